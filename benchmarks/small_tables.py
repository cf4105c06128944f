"""Held-out log density on small, wide and whole tables: Roundtrip against the baselines.

    python benchmarks/small_tables.py --data FOLDER      # or set ROUNDTRIP_DATA

Default settings for all methods, 5 splits per table. small_tables_data.py has the tables and how
they are prepared, small_tables_methods.py the methods. --tables names tables or groups of them
(small, subsets, wide, whole). Results go to results/small-tables; an interrupted run resumes where
it stopped, and two processes may run on different tables. The page shows all results that are
there.

Penguins and cars need: pip install -r benchmarks/small-tables-requirements.txt
"""

import argparse
import math
import time
from functools import partial
from pathlib import Path

import numpy as np
from small_tables_data import GROUPS, TABLES, MissingTableError, split_of
from small_tables_methods import METHODS, ROUNDTRIP
from small_tables_page import page

from roundtrip.reproduce.fits import estimate_density, settings_name, timed_fit
from roundtrip.reproduce.request import Request
from roundtrip.reproduce.runs import Log, Runs

SMALL_ROWS = 5000
"""Up to so many training rows there is no time limit: patience ends the training of flows, which
therefore does not depend on what else the machine does."""

TOL, EVALUATIONS = 0.1, 4000
"""Standard error of a row's log density, and most evaluations of G to reach it."""


def time_limit(rows, budget):
    """Seconds of a fit, or None."""
    return None if rows <= SMALL_ROWS else budget


def key(table, method, split, data, budget):
    """What a result is kept by; `settings` is a short name for all settings behind it."""
    settings = settings_name(METHODS[method](random_state=split))
    limit = time_limit(len(data.train), budget)
    parts = [data.digest, settings, "free" if limit is None else f"{limit:g}s"]
    if method == ROUNDTRIP:
        parts.append(f"{TOL:g}-{EVALUATIONS}")
    return {"table": table, "method": method, "split": split, "settings": "-".join(parts)}


def measure(method, split, data, budget):
    est = METHODS[method](random_state=split)
    limit = time_limit(len(data.train), budget)
    record = timed_fit(est, data.train, max_time=limit)
    start = time.perf_counter()
    details = getattr(est, "details_", {})
    if method == ROUNDTRIP:
        estimate = estimate_density(est, data.test, tol=TOL, evaluations=EVALUATIONS)
        log_density = estimate.log_density
        details = {
            "converged": float(estimate.converged.mean()),
            "median_evaluations": float(np.median(estimate.n_evaluations)),
            "latent_dim": est.latent_dim_,
        }
    else:
        log_density = est.score_samples(data.test)
    seconds = time.perf_counter() - start
    mean, error = mean_and_error(log_density)
    result = {
        "log_density": mean,
        "std_error": error,
        "fit_seconds": record["fit_seconds"],
        "cpu_seconds": record["cpu_seconds"],
        "score_seconds": seconds,
        "max_time": limit,
        "stopped_by": record["stopped_by"],
        "epochs": record["epochs"],
        "rows": data.digest,
        "train_rows": len(data.train),
        "test_rows": len(data.test),
        "features": data.train.shape[1],
        "spread_columns": data.spread_columns,
        **details,
    }
    if data.truth is not None:
        result["truth"] = float(data.truth.mean())
        result["truth_std_error"] = mean_and_error(log_density - data.truth)[1]
    return result


def mean_and_error(values):
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def chosen(names):
    """Tables that are named themselves or by a group."""
    return [
        name for name, table in TABLES.items() if name in names or set(table.groups) & set(names)
    ]


def present(tables, folder, log=print):
    """Tables whose files and packages are there; says which are not."""
    found = []
    for table in tables:
        try:
            split_of(table, 0, folder)
            found.append(table)
        except MissingTableError as error:
            log(f"{table} is left out: {error}")
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--tables", nargs="+", choices=[*GROUPS, *TABLES], default=GROUPS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--budget", type=float, default=120.0, help=f"seconds per fit above {SMALL_ROWS} rows"
    )
    parser.add_argument("--again", action="store_true", help="compute anew what is known")
    parser.add_argument("--output", type=Path, default=Path("results/small-tables"))
    arguments = parser.parse_args()
    request = Request(arguments.output.name, arguments.output.parent)
    runs = request.runs()
    tables = present(chosen(arguments.tables), arguments.data)
    methods = [name for name in METHODS if name in arguments.methods]
    log = Log(len(methods) * len(tables) * arguments.splits)
    for method in methods:
        for split in range(arguments.splits):
            for table in tables:
                data = split_of(table, split, arguments.data)
                name = key(table, method, split, data, arguments.budget)
                if arguments.again:
                    runs.forget(name)
                compute = partial(measure, method, split, data, arguments.budget)
                log.run(runs, name, compute, "log_density")
    text = page(Runs(runs.path).records)
    request.write_text("small-tables.md", text)
    print(text)


if __name__ == "__main__":
    main()
