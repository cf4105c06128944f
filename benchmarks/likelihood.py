"""Held-out log-likelihood on real tables: Roundtrip against the baselines at equal wall time.

    python benchmarks/likelihood.py --data FOLDER --budget 180      # or set ROUNDTRIP_DATA

The table of `roundtrip reproduce table1` without the paper's preset; it shares its results, in
results/table1. Every method gets the same rows, scaled to [0, 1] and spread over their rounding
(AReM by ±0.005, the count F8 of CASP by ±0.5, BANK by ±0.2 of a code or count), the same validation
rows and the same seconds for fitting. Roundtrip's likelihoods are those of the adaptive estimate at
a tolerance of 0.05. An interrupted run resumes where it stopped.
"""

import argparse
from pathlib import Path

from roundtrip.reproduce import Request, reproduce
from roundtrip.reproduce.methods import METHODS, PAPER


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--budget", type=float, default=180.0, help="seconds per fit")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=[m for m in METHODS if m != PAPER])
    arguments = parser.parse_args()
    request = Request(
        "table1",
        methods=arguments.methods,
        seeds=arguments.seeds,
        budget=arguments.budget,
        data_home=arguments.data,
    )
    print(reproduce(request))


if __name__ == "__main__":
    main()
