"""What each decision of the outlier detector is worth: precision at k and AUROC without it.

    python benchmarks/outlier_ablation.py --data FOLDER      # or set ROUNDTRIP_DATA

Shuttle, Mammography and ForestCover, on the splits of table 2. Results go to
results/outlier-ablation; an interrupted run goes on where it stopped.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from roundtrip import Roundtrip, RoundtripDetector, detector, gaussian_columns
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log
from roundtrip.reproduce.table2 import DATASETS, precision_at_k

CONSTANTS = [*detector.CONSTANTS, *gaussian_columns.CONSTANTS]


def variants(features):
    """Each variant is the detector with one thing changed."""
    return {
        "default": {},
        "no trimming": {"trim": False},
        "columns only standardised": {"gaussian_columns": False},
        "noise of width 0.5": {"sigma": 0.5},
        "noise of width 1": {"sigma": 1.0},
        "noise of width 4": {"sigma": 4.0},
        "adversarial training": {
            "estimator": Roundtrip(
                min(features, 10), objective="adversarial", scale=None, max_epochs=6
            )
        },
    }


def measure(dataset, variant, seed, data_home):
    data = DATASETS[dataset](data_home=data_home, random_state=seed)
    rows = np.concatenate([data.train, data.validation])
    settings = variants(rows.shape[1])[variant]
    fitted = RoundtripDetector(random_state=seed, **settings).fit(rows)
    oddness = -fitted.score_samples(data.test)
    return {
        "precision_at_k": precision_at_k(oddness, data.test_labels),
        "auroc": float(roc_auc_score(data.test_labels, oddness)),
        "trimmed": fitted.n_trimmed_,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    request = Request("outlier-ablation", data_home=arguments.data)
    runs, names = request.runs(), list(variants(1))
    log = Log(len(names) * len(DATASETS) * arguments.seeds)
    table = []
    for name in names:
        cells = [name]
        for dataset in DATASETS:
            records = [
                log.run(
                    runs,
                    {"variant": name, "dataset": dataset, "seed": seed, "constants": CONSTANTS},
                    partial(measure, dataset, name, seed, arguments.data),
                    "precision_at_k",
                )
                for seed in range(arguments.seeds)
            ]
            precision, auroc = (
                np.mean([record[what] for record in records])
                for what in ("precision_at_k", "auroc")
            )
            cells.append(f"{precision:.3f} / {auroc:.3f}")
        table.append(cells)
    text = "# Outlier detection: precision at k / AUROC with one thing changed\n\n"
    text += f"{arguments.seeds} seed(s).\n\n"
    text += markdown_table(["variant", *DATASETS], table) + "\n"
    request.write_text("outlier-ablation.md", text)
    print(text)


if __name__ == "__main__":
    main()
