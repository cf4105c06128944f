"""What certified log densities cost, beside a neural spline flow, and whether they are right.

    OMP_NUM_THREADS=1 python benchmarks/scoring.py --data FOLDER      # or set ROUNDTRIP_DATA

Roundtrip and NSF are fitted to each table with default settings and the same time limit, then score
the same test rows in turns, so that a machine that slows down slows both. Parts, all by default:

rows         seconds per row of `density` and of NSF, evaluations of G, rows that converged
far          rows 4 to 30 standard deviations from test rows: time beside test rows, and
             certificates against 100,000 draws from each of several seeds
calibration  errors of `density` in units of its standard errors, and their mean
mean         seconds of `density_mean` for a standard error of 0.01, and its calibration

scoring_parts.py measures, scoring_page.py writes the page. Run it on an otherwise idle machine.
Results go to results/scoring, fitted models to results/scoring/models; an interrupted run resumes
where it stopped.
"""

import argparse
from functools import partial
from pathlib import Path

import torch
from scoring_page import page
from scoring_parts import PARTS, TABLES

from roundtrip.reproduce.request import Request
from roundtrip.reproduce.runs import Log, Runs


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--budget", type=float, default=180.0, help="seconds per fit")
    parser.add_argument("--again", action="store_true", help="compute anew what is known")
    arguments = parser.parse_args()
    request = Request("scoring", data_home=arguments.data, budget=arguments.budget)
    runs = request.runs()
    cases = [
        {"part": name, "table": table, **case}
        for name in arguments.parts
        for table in arguments.tables
        if PARTS[name].applies(TABLES[table])
        for case in PARTS[name].cases
    ]
    log = Log(len(cases))
    for case in cases:
        key = {**case, "budget": arguments.budget, "threads": torch.get_num_threads()}
        if arguments.again:
            runs.forget(key)
        part = PARTS[case["part"]]
        options = {name: case[name] for name in case if name not in ("part", "table")}
        compute = partial(part.measure, request, case["table"], **options)
        log.run(runs, key, compute, part.shown)
    text = page(Runs(runs.path).records)
    request.write_text("scoring.md", text)
    print(text)


if __name__ == "__main__":
    main()
