"""Fits of incomplete tables: Roundtrip with missing cells against imputation before the fit.

    OMP_NUM_THREADS=1 python benchmarks/incomplete_tables.py --data FOLDER \
        --miceforest ENVIRONMENT/bin/python

30 % of the cells of the training rows are removed completely at random; the test rows are complete.
Roundtrip is fitted to the table as it is, and to the table with its missing cells imputed, in the
same time; the reference is the table before cells were removed. incomplete_tables_data.py has the
tables, incomplete_tables_imputation.py the imputations. Results go to results/incomplete-tables; an
interrupted run resumes where it stopped.

miceforest runs in an environment of its own, and is left out without --miceforest:

    python3.11 -m venv ENVIRONMENT
    ENVIRONMENT/bin/pip install -r benchmarks/incomplete-tables-requirements.txt
"""

import time
import warnings
from pathlib import Path

import numpy as np
from incomplete_tables_data import REMOVED, TABLES, available, roundings, split_of
from incomplete_tables_imputation import IMPUTATIONS, MICEFOREST
from table_runs import main

from roundtrip import DensityWarning, Roundtrip
from roundtrip.reproduce.fits import machine, timed_fit
from roundtrip.reproduce.request import markdown_table

COMPLETE, INCOMPLETE = "complete table", "Roundtrip, incomplete table"
METHODS = (COMPLETE, INCOMPLETE, *IMPUTATIONS)

TOL = 0.02
"""Standard error of a mean log density, in nats."""

SMALLEST_LEAD = 1.0
"""The bar: nats by which the fit of the incomplete table is ahead of each imputation."""


def cases(table, split, folder, budget, methods, miceforest):
    """Methods of a split; without its environment miceforest is left out."""
    return [
        {"table": table, "method": method, "split": split, "budget": budget}
        for method in METHODS
        if method in methods and (method != MICEFOREST or miceforest is not None)
    ]


def measure(table, method, split, budget, folder, miceforest, **_):
    """Impute if the method does, fit, and score the complete test rows."""
    data = split_of(table, split, folder)
    grids = roundings(data.incomplete)
    start = time.perf_counter()
    if method in IMPUTATIONS:
        train = IMPUTATIONS[method](data.incomplete, grids, split, miceforest)
    else:
        train = data.complete if method == COMPLETE else data.incomplete
    imputed = time.perf_counter()
    est = Roundtrip(random_state=split)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        record = timed_fit(est, train, max_time=budget)
    start_of_score = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        estimate = est.density_mean(data.test, tol=TOL)
    names = ("fit_seconds", "cpu_seconds", "stopped_by", "epochs")
    return {
        **{name: record[name] for name in names},
        "impute_seconds": imputed - start if method in IMPUTATIONS else 0.0,
        "score_seconds": time.perf_counter() - start_of_score,
        "log_density": estimate.mean,
        "std_error": estimate.std_error,
        "converged": bool(estimate.converged),
        "failed_rows": int(estimate.failed_rows),
        "latent_dim": est.latent_dim_,
        "warnings": [str(each.message) for each in caught],
        "train_rows": len(train),
        "test_rows": len(data.test),
        "features": train.shape[1],
        "removed": float(data.incomplete.isna().to_numpy().mean()),
        "steps": {column: grid.step for column, grid in grids.items()},
        "found_steps": found_steps(est, train),
    }


def found_steps(est, train):
    """Rounding step that the fit found in each column of numbers."""
    steps = dict(zip(train.columns, np.asarray(est.resolution_, dtype=float), strict=True))
    return {name: float(steps[name]) for name in train.select_dtypes("number")}


def page(records):
    """The page in Markdown, with the newest record of each table, method and split."""
    newest = {
        (record["table"], record["split"], record["budget"], record["method"]): record
        for record in records
    }
    groups = {}
    for table, split, budget, _ in newest:
        groups.setdefault((table, split, budget), {})
    for name, group in groups.items():
        group.update({m: newest[*name, m] for m in METHODS if (*name, m) in newest})
    order = sorted(groups, key=lambda name: (list(TABLES).index(name[0]), *name[1:]))
    shown = [record for name in order for record in groups[name].values()]
    parts = [
        "# Fits of incomplete tables",
        f"{REMOVED:.0%} of the cells of the training rows are removed completely at random; the "
        "test rows are complete. Mean log density of the test rows in nats per row, in the units "
        "of the table, ± the standard error that draws leave. Lead: how far the fit of the "
        "incomplete table is ahead. Loss: how far a fit is behind that of the complete table. All "
        "fits have default settings and the same time; imputation comes on top of it. CPU seconds "
        "far below those of the clock say that the machine was busy. "
        f"{machine(shown)}.",
        markdown_table(
            [
                *("table", "split", "method", "log density", "lead", "loss"),
                *("seconds to impute / fit / score", "CPU seconds of the fit", "epochs"),
                *("stopped by", "failed rows"),
            ],
            [_row(record, groups[name]) for name in order for record in groups[name].values()],
        ),
        *(_verdict(name, groups[name]) for name in order),
        *(
            f"Warning of the fit of {record['table']}, {record['method']}: {warning}"
            for record in shown
            for warning in record["warnings"]
        ),
        "## How columns were treated",
        "Log densities are comparable if all fits take the same columns for rounded. Imputed "
        "numbers are therefore rounded to the grid of the known training cells and limited to "
        "their range. Numbers are float64 in all tables, because NumPy's whole numbers can't be "
        "missing; text stays text, and its levels are the same in all tables. Of Beijing, rows "
        "without pm2.5 are left out; TEMP and PRES, of which a few are averages, and Iws, which "
        "sums a few wind speeds on which densities could concentrate, are rounded to whole "
        "numbers. With another step in a column, a fit spreads its values more or less widely: "
        "test rows then differ by up to the logarithm of the ratio for that reason alone.",
        markdown_table(
            ["table", "column", "step of the known cells", "fits with another step"],
            [row for table in TABLES for row in _columns(table, shown)],
        ),
        "Mean: the mean of the known cells; for text the most frequent level. IterativeImputer: "
        "scikit-learn's, with default settings; text as a column of zeros and ones for each "
        "level, of which the largest imputed one decides. miceforest: 5 iterations with default "
        "settings, text as a category; its values are values of other rows. One imputed table "
        "each.",
    ]
    return "\n\n".join(parts) + "\n"


def _row(record, group):
    return [
        *(record["table"], str(record["split"]), record["method"]),
        f"{record['log_density']:.2f} ± {record['std_error']:.2f}",
        _difference(group, INCOMPLETE, record) if record["method"] in IMPUTATIONS else "",
        "" if record["method"] == COMPLETE else _difference(group, COMPLETE, record),
        f"{record['impute_seconds']:.0f} / {record['fit_seconds']:.0f} / "
        f"{record['score_seconds']:.0f}",
        *(f"{record['cpu_seconds']:.0f}", str(record["epochs"])),
        *(record["stopped_by"], str(record["failed_rows"])),
    ]


def _difference(group, method, record):
    if method not in group:
        return ""
    return f"{group[method]['log_density'] - record['log_density']:.2f}"


def _verdict(name, group):
    table, split, budget = name
    missing = [method for method in METHODS if method not in group]
    title = f"{table}, split {split}, {budget:g} s a fit: "
    if INCOMPLETE in missing or not set(group) & set(IMPUTATIONS):
        return title + "not complete."
    own = group[INCOMPLETE]["log_density"]
    best = max(set(group) & set(IMPUTATIONS), key=lambda method: group[method]["log_density"])
    lead = own - group[best]["log_density"]
    verdict = f"{lead:.2f} nats ahead of the best imputation ({best}), "
    verdict += f"{'at least' if lead >= SMALLEST_LEAD else 'less than'} {SMALLEST_LEAD:g}"
    if COMPLETE not in missing:
        loss = group[COMPLETE]["log_density"] - own
        verdict += f"; the missing cells cost {loss:.2f} nats"
    return title + verdict + (f". Not there: {', '.join(missing)}." if missing else ".")


def _columns(table, shown):
    records = [record for record in shown if record["table"] == table]
    for column in records[0]["steps"] if records else ():
        steps = sorted({f"{record['steps'][column]:.4g}" for record in records})
        other = sorted(
            f"{record['method']} ({record['found_steps'][column]:.4g})"
            for record in records
            if not np.isclose(record["found_steps"][column], record["steps"][column], rtol=1e-3)
        )
        yield [table, column, " or ".join(steps), ", ".join(other) or "none"]


if __name__ == "__main__":
    main(
        "incomplete-tables",
        __doc__,
        tables=list(TABLES),
        splits=1,
        cases=cases,
        measure=measure,
        shown="log_density",
        page=page,
        available=available,
        options={
            "budget": {"type": float, "default": 120.0, "help": "seconds per fit"},
            "methods": {"nargs": "+", "choices": METHODS, "default": METHODS},
            "miceforest": {"type": Path, "help": "Python of the environment of miceforest"},
        },
    )
