"""The page of mixed_tables.py, made from the records of its runs alone."""

import numpy as np
from mixed_tables_data import TABLES
from mixed_tables_methods import METHODS, ROUNDTRIP

from roundtrip.reproduce.request import markdown_table

FIGURES = {
    "indistinguishability": (
        "Trees that tell samples from test rows",
        "1 - 2 max(0, A - 0.5), where A is the area under the ROC curve of gradient-boosted trees "
        "that tell samples from as many test rows, in two-fold cross-validation. 1: they cannot; "
        "0: they always can.",
    ),
    "usefulness": (
        "Trees trained on samples, tested on real rows",
        "Area under the ROC curve for {areas}, R2 for {scores}. As many samples as training rows.",
    ),
    "association_error": (
        "Error of associations",
        "Mean absolute difference, over all pairs of columns, of their association among samples "
        "and among as many test rows: Spearman's correlation of numbers, Cramer's V of categories, "
        "correlation ratio of ranks for a number and a category. Where a number is missing counts "
        "as a column, too. Lower is better.",
    ),
    "copies": (
        "Copies of training rows",
        "Share of samples that equal a training row in all columns. It should not be above that of "
        "the test rows: a method that repeats its training rows passes all other tables.",
    ),
}
"""Title and explanation of each figure of a record."""


STARVED = 0.8
"""A fit of limited time should have had this share of a core at least."""


class Results:
    """The newest records of each table, method and seed; rows that are cut otherwise are older."""

    def __init__(self, records):
        newest = {record["table"]: record["rows"] for record in records}
        self._records = {
            (record["table"], record["method"], record["seed"]): record
            for record in records
            if record["rows"] == newest[record["table"]]
        }
        known = {key[:2] for key in self._records}
        self.tables = [table for table in TABLES if any(table == each for each, _ in known)]
        self.methods = [name for name in METHODS if any(name == each for _, each in known)]

    def of(self, table=None, method=None):
        return [
            record
            for (of_table, of_method, _), record in sorted(self._records.items())
            if table in (None, of_table) and method in (None, of_method)
        ]

    def values(self, table, method, name):
        return [record[name] for record in self.of(table, method)]


def page(records):
    """The page in Markdown."""
    results = Results(records)
    every = results.of()
    seeds = sorted({record["seed"] for record in every})
    budgets = sorted({record["budget"] for record in every if record["budget"] is not None})
    limits = " or ".join(f"{budget:g} s" for budget in budgets)
    cores = " or ".join(sorted({str(record["cores"]) for record in every}))
    parts = [
        "# Samples of tables with text, categories and missing cells",
        "Random splits, 80% to fit and 20% to test: "
        + (f"seed {seeds[0]}. " if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}, ")
        + ("" if len(seeds) == 1 else "mean ± standard deviation over them. ")
        + (f"{limits} per fit, on {cores} cores. " if budgets else "")
        + '"Real rows" are training rows in place of samples: what perfect samples would get.',
        markdown_table(
            ["table", "training rows", "test rows", "columns", "categories", "missing cells"],
            [_shape(results.of(table)[0]) for table in results.tables],
        ),
    ]
    areas, scores = (
        [table for table in results.tables if TABLES[table].score == score]
        for score in ("AUROC", "R2")
    )
    for name, (title, text) in FIGURES.items():
        text = text.format(areas=_targets(areas), scores=_targets(scores))
        parts += [f"## {title}", text, _figure(results, name)]
    parts += ["## What each got", *_effort(results)]
    return "\n\n".join(parts) + "\n"


def _shape(record):
    names = ("train_rows", "test_rows", "columns", "categories", "missing_cells")
    return [record["table"], *(f"{record[name]:,}" for name in names)]


def _targets(tables):
    return ", ".join(f"{table} ({TABLES[table].target})" for table in tables) or "no table"


def _figure(results, name):
    rows = []
    if name == "copies":
        values = [_of_test_rows(results.of(table)) for table in results.tables]
        rows.append(["test rows", *_cells(values, mean=True)])
    mean = name != "usefulness"  # areas and R2 have none
    for method in results.methods:
        values = [results.values(table, method, name) for table in results.tables]
        rows.append([method, *_cells(values, mean=mean)])
    return markdown_table(["method", *results.tables, *(["mean"] if mean else [])], rows)


def _of_test_rows(records):
    """Copies among the test rows, once for each seed."""
    return list({record["seed"]: record["test_copies"] for record in records}.values())


def _cells(values, *, mean):
    """A cell per table, and the mean over tables if all are there."""
    cells = [_cell(each) for each in values]
    if mean:
        cells.append(f"{np.mean([np.mean(each) for each in values]):.3f}" if all(values) else "")
    return cells


def _cell(values):
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def _effort(results):
    table = markdown_table(
        ["method", "threads", "seeds", *results.tables],
        [
            [method, *_threads_and_seeds(results, method)]
            + [_seconds(results.of(table, method)) for table in results.tables]
            for method in results.methods
        ],
    )
    settings = [f"- {method}: {METHODS[method].settings}." for method in results.methods]
    versions = {}
    for record in results.of():
        for package, version in record["versions"].items():
            versions.setdefault(package, set()).add(version)
    listed = ", ".join(f"{name} {' or '.join(sorted(each))}" for name, each in versions.items())
    return [
        "Seconds to fit (of the processor, in parentheses) / to draw as many rows as were fitted.",
        table,
        "\n".join(settings),
        *_epochs(results),
        *_starved(results),
        *_types(results),
        f"Versions: {listed}; trees of scikit-learn "
        f"{' or '.join(sorted({record['scikit_learn'] for record in results.of()}))}.",
    ]


def _threads_and_seeds(results, method):
    records = results.of(method=method)
    threads = sorted({record["method_threads"] for record in records})
    counts = {len(results.of(table, method)) for table in results.tables} - {0}
    return [" or ".join(map(str, each)) for each in (threads, sorted(counts))]


def _seconds(records):
    if not records:
        return ""
    fit, cpu, sample = (
        np.mean([record[f"{what}_seconds"] for record in records])
        for what in ("fit", "cpu", "sample")
    )
    return f"{fit:.0f} ({cpu:.0f}) / {sample:.0f}"


def _epochs(results):
    """How far the trainings of limited time came."""
    parts = []
    for unit in ("epochs", "rounds"):
        for method in results.methods:
            records = [record for record in results.of(method=method) if unit in record]
            if records:
                low, high = (f(record[unit] for record in records) for f in (min, max))
                span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
                parts.append(f"{method} {span} {unit}")
    return [f"Training: {'; '.join(parts)}."] if parts else []


def _starved(results):
    """Fits that had to share a core with other programs: their figures are too low."""
    names = [
        f"{record['method']} on {record['table']}, seed {record['seed']}"
        for record in results.of()
        if record["budget"] is not None and record["cpu_seconds"] < STARVED * record["fit_seconds"]
    ]
    return [f"With less than {STARVED:.0%} of a core: {'; '.join(names)}."] if names else []


def _types(results):
    same = [record["same_types"] for record in results.of(method=ROUNDTRIP)]
    if not same:
        return []
    runs = f"{sum(same)} of {len(same)} runs"
    return [f"Samples of {ROUNDTRIP} have the types of the training rows in {runs}."]
