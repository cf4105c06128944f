"""How often a column's value lies in its 90 % interval given the other columns.

    python benchmarks/interval_coverage.py --data FOLDER      # or set ROUNDTRIP_DATA

For some columns of small tables, Roundtrip is fitted to the column with the other columns as
context, with default settings; samples given the context of a test row make its interval. The rows
are prepared as for small_tables.py. Results go to results/interval-coverage; an interrupted run
resumes where it stopped.

Penguins need: pip install -r benchmarks/small-tables-requirements.txt
"""

import numpy as np
from small_tables_data import TABLES, rows_and_steps, split_of
from table_runs import main

from roundtrip import Roundtrip
from roundtrip.reproduce.fits import machine, timed_fit
from roundtrip.reproduce.request import markdown_table

NAMES = ("diabetes", "penguins", "concrete", "red wine", "CASP, 1000 rows")
COLUMNS, FEWEST_VALUES = 3, 11
"""Columns per table: the first that have so many distinct values."""

MOST_ROWS, SAMPLES = 150, 500
"""Test rows, and samples given the context of each."""

LEVEL, LOWEST, HIGHEST = 0.9, 0.86, 0.94
"""Of the intervals; the bar for their coverage."""


def columns_of(X):
    """Numbers of the columns that are predicted."""
    many = [j for j, column in enumerate(X.T) if len(np.unique(column)) >= FEWEST_VALUES]
    return many[:COLUMNS]


def cases(table, split, folder):
    X, _ = rows_and_steps(TABLES[table].load, folder)
    return [{"table": table, "split": split, "column": j} for j in columns_of(X)]


def intervals(est, context, random_state):
    """Lower and upper ends, between quantiles of samples given each row of the context."""
    contexts = np.repeat(context, SAMPLES, axis=0)
    samples = est.sample(len(contexts), random_state=random_state, context=contexts)
    tail = (1 - LEVEL) / 2
    return np.quantile(samples.reshape(len(context), SAMPLES), [tail, 1 - tail], axis=1)


def measure(table, split, column, folder):
    data = split_of(table, split, folder)
    est = Roundtrip(random_state=split)
    context = np.delete(data.train, column, axis=1)
    record = timed_fit(est, data.train[:, [column]], context=context)
    test = data.test[:MOST_ROWS]
    low, high = intervals(est, np.delete(test, column, axis=1), random_state=split)
    value = test[:, column]
    return {
        **{name: record[name] for name in ("fit_seconds", "cpu_seconds", "stopped_by", "epochs")},
        "rows": data.digest,
        "train_rows": len(data.train),
        "test_rows": len(test),
        "below": int((value < low).sum()),
        "above": int((value > high).sum()),
        "coverage": float(((low <= value) & (value <= high)).mean()),
        "width": float((high - low).mean()),
    }


def page(records):
    """The page in Markdown, with the newest record of each run."""
    newest = {(record["table"], record["split"], record["column"]): record for record in records}
    by_table = {
        name: [record for (table, *_), record in newest.items() if table == name] for name in NAMES
    }
    by_table = {name: rows for name, rows in by_table.items() if rows}
    good = [name for name, rows in by_table.items() if LOWEST <= pooled(rows)[0] <= HIGHEST]
    parts = [
        f"# Coverage of {LEVEL:.0%} intervals of a column given the others",
        f"Up to {COLUMNS} columns per table, default settings; intervals between quantiles of "
        f"{SAMPLES} samples. Coverage ± its binomial standard error, over all fits of a table; "
        "the same test rows count once for each column. Width in standard deviations of the column "
        f"among the training rows. {machine(newest.values())}.",
        markdown_table(
            ["table", "rows", "fits", "intervals", "coverage", "below", "above", "width", "fit, s"],
            [_row(name, rows) for name, rows in by_table.items()],
        ),
        f"The coverage is between {LOWEST} and {HIGHEST} on {len(good)} of {len(by_table)} tables.",
        "## By column",
        markdown_table(
            ["table", "column", "splits", "coverage", "width"],
            [_of_column(name, rows, j) for name, rows in by_table.items() for j in _columns(rows)],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def pooled(rows):
    """Coverage over all intervals, its standard error, and their number."""
    number = sum(record["test_rows"] for record in rows)
    coverage = 1 - sum(record["below"] + record["above"] for record in rows) / number
    return coverage, np.sqrt(coverage * (1 - coverage) / number), number


def _columns(rows):
    return sorted({record["column"] for record in rows})


def _mean(rows, name):
    return np.mean([record[name] for record in rows])


def _row(name, rows):
    coverage, error, number = pooled(rows)
    below, above = (sum(record[side] for record in rows) / number for side in ("below", "above"))
    return [
        *(name, f"{rows[0]['train_rows']:,}", str(len(rows)), f"{number:,}"),
        *(f"{coverage:.3f} ± {error:.3f}", f"{below:.3f}", f"{above:.3f}"),
        *(f"{_mean(rows, 'width'):.2f}", f"{_mean(rows, 'fit_seconds'):.0f}"),
    ]


def _of_column(name, rows, column):
    rows = [record for record in rows if record["column"] == column]
    coverage, error, _ = pooled(rows)
    width = f"{_mean(rows, 'width'):.2f}"
    return [name, str(column), str(len(rows)), f"{coverage:.3f} ± {error:.3f}", width]


if __name__ == "__main__":
    main(
        "interval-coverage",
        __doc__,
        tables=NAMES,
        splits=3,
        cases=cases,
        measure=measure,
        shown="coverage",
        page=page,
    )
