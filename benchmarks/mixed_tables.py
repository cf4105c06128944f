"""Samples of tables with text, categories and missing cells: Roundtrip against other methods.

    python benchmarks/mixed_tables.py --data FOLDER --peers ENVIRONMENT/bin/python

Every method gets the same training rows, the same time and the same threads, and draws as many
rows as it was fitted to. mixed_tables_data.py has the tables, mixed_tables_methods.py the methods,
mixed_tables_metrics.py the figures. Results go to results/mixed-tables; an interrupted run resumes
where it stopped. The page shows all results that are there.

mostlyai-engine and arfpy run in an environment of their own, and are left out without --peers:

    python3.11 -m venv ENVIRONMENT
    ENVIRONMENT/bin/pip install torch==2.13.0
    ENVIRONMENT/bin/pip install -r benchmarks/mixed-tables-requirements.txt
    ENVIRONMENT/bin/pip uninstall -y torchvision torchaudio

torch goes first, and torchvision and torchaudio go again, because their builds may not fit torch's.
"""

import argparse
import hashlib
import subprocess
import sys
from functools import partial
from pathlib import Path

from mixed_tables_data import TABLES, split_of
from mixed_tables_methods import METHODS, ROUNDTRIP, Task
from mixed_tables_metrics import association_error, copies, indistinguishability, usefulness
from mixed_tables_page import page

from roundtrip import Roundtrip
from roundtrip.reproduce.fits import settings_name
from roundtrip.reproduce.request import Request
from roundtrip.reproduce.runs import Log, Runs


def key(table, name, seed, data, budget, threads):
    """What a result is kept by; `settings` stands for all that it depends on."""
    method = METHODS[name]
    parts = [data.digest, hashlib.sha256(method.settings.encode()).hexdigest()[:8]]
    if method.timed:
        parts += [f"{budget:g}s", f"{threads}-threads"]
    if name == ROUNDTRIP:
        parts.append(settings_name(Roundtrip(random_state=seed)))
    return {"table": table, "method": name, "seed": seed, "settings": "-".join(parts)}


def measure(name, data, task):
    """Fit, draw and compare with the test rows."""
    drawn = METHODS[name].draw(data, task)
    samples, categories = drawn.samples, data.categories
    some = samples[: len(data.test)]
    versions = drawn.facts["versions"]
    return {
        "indistinguishability": indistinguishability(some, data.test, categories, task.seed),
        "usefulness": usefulness(samples, data.test, categories, data.target, task.seed),
        "association_error": association_error(some, data.test, categories),
        "copies": copies(samples, data.train, categories),
        "test_copies": copies(data.test, data.train, categories),
        "rows": data.digest,
        "train_rows": len(data.train),
        "test_rows": len(data.test),
        "columns": data.train.shape[1],
        "categories": len(categories),
        "missing_cells": int(data.train.isna().sum().sum()),
        "budget": task.budget if METHODS[name].timed else None,
        "method_threads": task.threads if METHODS[name].timed else 1,
        **{entry: value for entry, value in drawn.facts.items() if entry != "versions"},
        "versions": versions,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--peers", type=Path, help="Python of the environment of other packages")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=300.0, help="seconds per fit")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="compute anew what is known")
    parser.add_argument("--output", type=Path, default=Path("results/mixed-tables"))
    arguments = parser.parse_args()
    methods = [name for name in METHODS if name in arguments.methods]
    if arguments.peers is None:
        left_out = [name for name in methods if METHODS[name].external]
        methods = [name for name in methods if name not in left_out]
        if left_out:
            print(f"without --peers: {', '.join(left_out)} left out", file=sys.stderr)
    request = Request(arguments.output.name, arguments.output.parent)
    runs = request.runs()
    log = Log(len(methods) * len(arguments.tables) * arguments.seeds)
    failed = []
    for seed in range(arguments.seeds):
        for table in arguments.tables:
            data = split_of(table, seed, arguments.data)
            for name in methods:
                known_by = key(table, name, seed, data, arguments.budget, arguments.threads)
                if arguments.again:
                    runs.forget(known_by)
                task = Task(
                    seed, arguments.budget, arguments.threads, len(data.train), arguments.peers
                )
                compute = partial(measure, name, data, task)
                try:
                    log.run(runs, known_by, compute, "indistinguishability")
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    if not METHODS[name].external:
                        raise
                    print(f"    {error}", file=sys.stderr)
                    failed.append(f"{name} on {table}, seed {seed}")
    text = page(Runs(runs.path).records)
    request.write_text("mixed-tables.md", text)
    print(text)
    if failed:
        raise SystemExit(f"no result: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
