"""The page of small_tables.py, made from the records of its runs alone."""

from collections import Counter

import numpy as np
from small_tables_data import TABLES
from small_tables_methods import GAUSSIAN, METHODS, ROUNDTRIP

from roundtrip.reproduce.fits import machine
from roundtrip.reproduce.request import markdown_table

STARVED = 0.8
"""A fit that its time limit ended should have had this share of a core."""


class Comparison:
    """Records of one table: of all methods that have been run, and of the splits they share."""

    def __init__(self, table, records):
        self.table = table
        records = [record for record in records if record["table"] == table]
        # Rows that are prepared in another way are another table: the newest counts.
        newest = [record for record in records if record["rows"] == records[-1]["rows"]]
        by_split = {(record["method"], record["split"]): record for record in newest}
        self.methods = [name for name in METHODS if any(name == method for method, _ in by_split)]
        shared = [{split for method, split in by_split if method == m} for m in self.methods]
        self.splits = sorted(set.intersection(*shared)) if shared else []
        self.records = {
            method: [by_split[method, split] for split in self.splits] for method in self.methods
        }

    def __getitem__(self, name):
        """What is the same in all records of the table."""
        return self.records[self.methods[0]][0][name]

    def values(self, method, name):
        return np.array([record[name] for record in self.records[method]])

    def mean(self, method):
        return self.values(method, "log_density").mean()

    def rank(self, method):
        return 1 + sum(self.mean(other) > self.mean(method) for other in self.methods)

    def lead(self, method):
        """Nats per feature by which a method is ahead of the best other one."""
        others = [self.mean(other) for other in self.methods if other != method]
        return (self.mean(method) - max(others)) / self["features"] if others else np.nan

    def below_truth(self, method):
        """Mean difference from the true log density, and its standard error; None if unknown."""
        if "truth" not in self.records[method][0]:
            return None
        difference = self.mean(method) - self.values(method, "truth").mean()
        error = np.sqrt((self.values(method, "truth_std_error") ** 2).sum()) / len(self.splits)
        return difference, error


def page(records):
    """The page in Markdown."""
    known = {record["table"] for record in records}
    tables = [Comparison(table, records) for table in TABLES if table in known]
    tables = [table for table in tables if table.splits]
    methods = [name for name in METHODS if any(name in table.methods for table in tables)]
    shown = [record for table in tables for each in table.records.values() for record in each]
    parts = [
        "# Small, wide and whole tables with default settings",
        "Mean test log density in nats, ± its standard error over splits. Rounded columns, counted "
        'as "spread", are spread over their rounding steps; then all columns are standardised by '
        'the training rows. "Lead": nats per feature by which Roundtrip is ahead of the best other '
        "method (behind, if negative). "
        f"{machine(shown)}.",
        markdown_table(
            ["table", "rows", "features", "spread", "splits", *methods, "rank", "lead"],
            [_row(table, methods) for table in tables],
        ),
        *_summary(tables, methods),
    ]
    truths = [table for table in tables if table.below_truth(table.methods[0])]
    if truths:
        parts += [
            "## Known truths: mean log density less the true one, nats (in its standard errors)",
            markdown_table(
                ["table", *methods],
                [
                    [table.table, *(_of_truth(table, method) for method in methods)]
                    for table in truths
                ],
            ),
        ]
    parts += [
        "## Seconds of processor time to fit / seconds to score the test rows",
        markdown_table(
            ["table", "scored rows", *methods],
            [_seconds(table, methods) for table in tables],
        ),
    ]
    trained = [method for method in methods if method in ("MAF", "NSF", ROUNDTRIP)]
    if trained:
        parts += [
            "## What ended training, and Roundtrip's estimates",
            "Patience ends a training that no longer improves; a limit in seconds stands beside "
            "it. Converged: share of test rows whose log density is certain to "
            "0.1 nats; evaluations of G per row, median.",
            markdown_table(
                ["table", *trained, "converged", "evaluations"],
                [_ends(table, trained) for table in tables],
            ),
            *_starved(shown),
        ]
    return "\n\n".join(parts) + "\n"


def _row(table, methods):
    cells = [table.table, f"{table['train_rows']:,}"]
    cells += [str(table[name]) for name in ("features", "spread_columns")]
    cells.append(str(len(table.splits)))
    for method in methods:
        cells.append("" if method not in table.methods else _value(table, method))
    if ROUNDTRIP not in table.methods:
        return [*cells, "", ""]
    lead = table.lead(ROUNDTRIP)
    rank = f"{table.rank(ROUNDTRIP)} of {len(table.methods)}"
    return [*cells, rank, "" if np.isnan(lead) else f"{lead:+.3f}"]


def _value(table, method):
    text = _number(table.mean(method), 2)
    if len(table.splits) == 1:
        return text
    values = table.values(method, "log_density")
    return f"{text} ± {_number(values.std(ddof=1) / np.sqrt(len(values)), 2)}"


def _number(value, digits):
    """A flow may extrapolate so badly that a few rows make the mean astronomically low."""
    return f"{value:.{digits}f}" if abs(value) < 1e4 else f"{value:.0e}"


def _summary(tables, methods):
    """Mean ranks over the tables that all methods have, and where Roundtrip is behind."""
    complete = [table for table in tables if len(table.methods) == len(methods)]
    parts = []
    if complete and len(methods) > 1:
        ranks = [np.mean([table.rank(method) for table in complete]) for method in methods]
        parts += [
            f"Mean rank over the {len(complete)} tables that all methods were run on:",
            markdown_table(methods, [[f"{rank:.2f}" for rank in ranks]]),
        ]
    tables = [t for t in tables if ROUNDTRIP in t.methods and len(t.methods) > 1]
    if not tables:
        return parts
    with_gaussian = [table for table in tables if GAUSSIAN in table.methods]
    behind = [t for t in with_gaussian if t.mean(ROUNDTRIP) < t.mean(GAUSSIAN)]
    names = f" ({', '.join(table.table for table in behind)})" if behind else ""
    last = min(tables, key=lambda table: table.lead(ROUNDTRIP))
    first = sum(table.rank(ROUNDTRIP) == 1 for table in tables)
    text = (
        f"Roundtrip is first on {first} of {len(tables)} tables, and behind the single Gaussian "
        f"on {len(behind)} of {len(with_gaussian)}{names}."
    )
    if last.lead(ROUNDTRIP) < 0:
        text += (
            f" It is farthest behind the best on {last.table}: "
            f"by {-last.lead(ROUNDTRIP):.3f} nats per feature."
        )
    return [*parts, text]


def _of_truth(table, method):
    if method not in table.methods:
        return ""
    difference, error = table.below_truth(method)
    return f"{_number(difference, 3)} ({difference / error:.1f})"


def _seconds(table, methods):
    cells = [table.table, f"{table['test_rows']:,}"]
    for method in methods:
        if method not in table.methods:
            cells.append("")
            continue
        fit, score = (table.values(method, f"{what}_seconds").mean() for what in ("cpu", "score"))
        cells.append(f"{fit:.1f} / {score:.1f}")
    return cells


def _ends(table, trained):
    cells = [table.table]
    for method in trained:
        ends = Counter(
            record["stopped_by"]
            + ("" if (limit := record["max_time"]) is None else f" ({limit:g} s)")
            for record in table.records.get(method, [])
        )
        same = len(ends) == 1
        cells.append(", ".join(end if same else f"{end} {n}" for end, n in ends.items()))
    if ROUNDTRIP not in table.methods:
        return [*cells, "", ""]
    converged = table.values(ROUNDTRIP, "converged").mean()
    evaluations = table.values(ROUNDTRIP, "median_evaluations").mean()
    return [*cells, f"{converged:.1%}", f"{evaluations:.0f}"]


def _starved(records):
    """Fits that a time limit ended although they had to share a core: their figures are too low."""
    names = [
        f"{record['method']} on {record['table']}, split {record['split']}"
        for record in records
        if record["stopped_by"] == "max_time"
        and record["cpu_seconds"] < STARVED * record["fit_seconds"]
    ]
    if not names:
        return []
    return [f"Ended by the limit with less than {STARVED:.0%} of a core: {'; '.join(names)}."]
