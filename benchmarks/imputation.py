"""Imputation of missing cells: Roundtrip against others, each fitted on the incomplete table alone.

    OMP_NUM_THREADS=1 python benchmarks/imputation.py --data FOLDER \
        --miceforest ENVIRONMENT/bin/python

Cells of complete tables are hidden in three patterns and imputed: parts_data.py has the tables and
patterns, imputation_methods.py the methods, imputation_scores.py the figures and imputation_page.py
the page. --tables, --methods, --patterns and --seeds choose among them. Results go to
results/imputation; an interrupted run resumes where it stopped.

miceforest runs in an environment of its own, and is left out without --miceforest:

    python3.11 -m venv ENVIRONMENT
    ENVIRONMENT/bin/pip install -r benchmarks/incomplete-tables-requirements.txt
"""

import resource
import time
from pathlib import Path

from imputation_methods import METHODS, MICEFOREST, ROUNDTRIP, completed
from imputation_page import NAMES, page
from imputation_scores import scores
from incomplete_tables_data import roundings
from parts_data import SHARES, TABLES, available, hidden_cells, rows_of
from table_runs import main


def cases(table, split, folder, rows, patterns, methods, budget, miceforest):
    """Patterns and methods of a table; without its environment miceforest is left out."""
    return [
        {
            **{"table": table, "pattern": pattern, "method": method, "split": split, "rows": rows},
            **({"budget": budget} if method == ROUNDTRIP else {}),
        }
        for pattern in patterns
        for method in METHODS
        if method in methods and (method != MICEFOREST or miceforest is not None)
    ]


def measure(table, pattern, method, split, rows, budget, folder, miceforest, **_):
    """Hide cells, impute them, and compare with the true ones."""
    truth = rows_of(table, split, folder)[:rows]
    incomplete = truth.mask(hidden_cells(truth, pattern, split))
    grids = roundings(incomplete)
    start, cpu_start = time.perf_counter(), cpu_seconds()
    imputed = completed(method, incomplete, grids, split, budget, miceforest)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu_start
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "table_rows": len(truth),
        "columns": truth.shape[1],
        "hidden": float(incomplete.isna().to_numpy().mean()),
        **imputed.details,
        **scores(truth, incomplete, imputed, target=TABLES[table].target, seed=split),
    }


def cpu_seconds():
    """CPU seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    main(
        "imputation",
        __doc__,
        tables=NAMES,
        splits=3,
        cases=cases,
        measure=measure,
        shown="energy",
        page=page,
        available=available,
        of_roundtrip=lambda case: case["method"] == ROUNDTRIP,
        options={
            "methods": {"nargs": "+", "choices": list(METHODS), "default": list(METHODS)},
            "patterns": {"nargs": "+", "choices": list(SHARES), "default": list(SHARES)},
            "rows": {"type": int, "default": 2000, "help": "most rows of a table"},
            "budget": {"type": float, "default": 120.0, "help": "most seconds of a Roundtrip fit"},
            "miceforest": {"type": Path, "help": "Python of the environment of miceforest"},
        },
    )
