"""How much the detector's ranking changes from fit to fit: codes drawn, or spread evenly.

    python benchmarks/outlier_stability.py --data FOLDER      # or set ROUNDTRIP_DATA

The same rows of Mammography are fitted several times, each time with another seed, and the test
rows are ranked; no label is looked at. Results go to results/outlier-stability; an interrupted run
resumes where it stopped.
"""

import argparse
import hashlib
import json
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.stats import rankdata

from roundtrip import LatentDistribution, RoundtripDetector
from roundtrip.datasets import load_mammography
from roundtrip.model.prior import StandardNormal
from roundtrip.outliers.default_density import SIGMA, default_density
from roundtrip.reproduce.fits import machine, settings_name
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log
from roundtrip.reproduce.table2 import refuse_interrupted

SPLITS, FITS, FIRST_SEED = 3, 4, 100
SHOWN, ODDEST = 0.025, 0.1
"""Shares of the test rows: the top of the list, and what spread of ranks is measured on."""

CODES = {"drawn": LatentDistribution.spread, "spread evenly": StandardNormal.spread}
"""How the codes are made that stand for p(z), which is N(0, I) in the detector's density."""


def key(codes, split):
    """What a result is kept by; `settings` is a short name for all settings behind it."""
    depends = [settings_name(default_density(1)), SIGMA, FITS, FIRST_SEED, SHOWN, ODDEST]
    name = hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:10]
    return {"codes": codes, "split": split, "settings": name}


def measure(codes, split, data_home):
    """Agreement between fits of one split."""
    data = load_mammography(data_home=data_home, random_state=split)
    rows = data.fitting_rows()[0]
    fitted = []
    with patch.object(StandardNormal, "spread", CODES[codes]):
        for seed in range(FITS):
            fitted.append(RoundtripDetector(sigma=SIGMA, random_state=FIRST_SEED + seed).fit(rows))
            refuse_interrupted(fitted[-1])
    ranks = np.stack([rankdata(each.score_samples(data.test)) for each in fitted])
    odd = np.sort(ranks.mean(axis=0).argsort()[: round(ODDEST * ranks.shape[1])])
    spread = ranks[:, odd].std(axis=0, ddof=1) / ranks[:, odd].mean(axis=0)
    count = round(SHOWN * ranks.shape[1])
    top = [set(each.argsort(kind="stable")[:count]) for each in ranks]
    shared = [len(a & b) / count for place, a in enumerate(top) for b in top[:place]]
    return {
        "spread_of_ranks": float(np.median(spread)),
        "shared_top": float(np.mean(shared)),
        "trimmed": [each.n_trimmed_ for each in fitted],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    arguments = parser.parse_args()
    request = Request("outlier-stability", data_home=arguments.data)
    runs, log = request.runs(), Log(len(CODES) * SPLITS)
    rows, shown = [], []
    for codes in CODES:
        records = [
            log.run(
                runs,
                key(codes, split),
                partial(measure, codes, split, arguments.data),
                "spread_of_ranks",
            )
            for split in range(SPLITS)
        ]
        shown += records
        each = [[record[name] for record in records] for name in ("spread_of_ranks", "shared_top")]
        rows.append([codes, *(", ".join(f"{value:.3f}" for value in values) for values in each)])
    text = "\n\n".join(
        [
            "# How much the ranking of rows changes from fit to fit",
            f"Mammography, {FITS} fits of the same rows with different seeds, {SPLITS} splits. The "
            f"spread is the standard deviation of a row's rank over its mean, median over the "
            f"oddest {ODDEST:.0%} of the test rows; the top of the list the oddest {SHOWN:.1%}. "
            f"{machine(shown)}.",
            markdown_table(["codes", "spread of ranks", "shared by the tops of two fits"], rows),
        ]
    )
    request.write_text("outlier-stability.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
