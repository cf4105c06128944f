"""What each decision of the outlier detector is worth: the detector with one thing changed.

    python benchmarks/outlier_ablation.py --data FOLDER      # or set ROUNDTRIP_DATA

First on tables in which outliers were planted (planted_outliers.py), by which a setting is chosen
without anybody's labels, then on Shuttle, Mammography and ForestCover with the splits of table 2,
to see what the choice is worth. Results go to results/outlier-ablation; an interrupted run resumes
where it stopped. --planted leaves out the second half, --variants all others than it names; the
page is of what was asked for.
"""

import argparse
import hashlib
import json
from functools import partial
from pathlib import Path

import numpy as np
import planted_outliers
from planted_outliers import KINDS, TABLES, planted
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from sklearn.covariance import EmpiricalCovariance
from sklearn.metrics import average_precision_score, roc_auc_score

from roundtrip import MLP, RoundtripDetector
from roundtrip.outliers.columns import GaussianColumns
from roundtrip.outliers.default_density import MOST_ROWS, SIGMA, default_density
from roundtrip.reproduce.fits import settings_name
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log
from roundtrip.reproduce.table2 import DATASETS, precision_at_k, refuse_interrupted

PLANTED = [f"{table}, {kind}" for kind in KINDS for table in TABLES]
WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
REAL_SEEDS = 1


def variants(features):
    """Each variant is the detector with one thing changed."""
    adversarial = default_density(features).set_params(
        objective="adversarial", network=MLP((64,) * 2, (64,) * 2), max_epochs=6
    )
    return {
        **{f"noise of width {sigma:g}": {"sigma": sigma} for sigma in WIDTHS},
        "no trimming": {"trim": False},
        "columns only standardised": {"gaussian_columns": False},
        "adversarial training": {"estimator": adversarial},
    }


OTHERS = {
    "a Gaussian on the same columns": lambda: EmpiricalCovariance(),
    "k-NN on the same columns": lambda: KNN(),
    "Isolation Forest on the same columns": lambda: IForest(random_state=0),
}
"""What the columns are worth without the network."""


VARIANTS = [*variants(1), *OTHERS]


def rows_of(dataset, seed, data_home):
    """Training rows, test rows and which of these are outliers."""
    if dataset in PLANTED:
        return planted(*dataset.split(", "), seed, data_home)
    data = DATASETS[dataset](data_home=data_home, random_state=seed)
    return data.fitting_rows()[0], data.test, data.test_labels


def key(variant, dataset, seed):
    """What a result is kept by; `settings` is a short name for all settings behind it."""
    depends = []
    if variant not in OTHERS:
        settings = variants(1)[variant]
        estimator = settings.get("estimator", default_density(1))
        depends += [settings_name(estimator), settings.get("sigma", SIGMA)]
    if dataset in PLANTED:
        depends += planted_outliers.CONSTANTS
    name = hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:10]
    return {"variant": variant, "dataset": dataset, "seed": seed, "settings": name}


def measure(dataset, variant, seed, data_home):
    training, test, outlier = rows_of(dataset, seed, data_home)
    trimmed = 0
    if variant in OTHERS:
        columns = GaussianColumns.fit(training)
        other = OTHERS[variant]().fit(columns.apply(training))
        distance = getattr(other, "mahalanobis", None) or other.decision_function
        oddness = distance(columns.apply(test))
    else:
        settings = variants(training.shape[1])[variant]
        if "estimator" in settings:  # as many rows as the default density is fitted to
            training = training[: round(MOST_ROWS / 0.8)]
        fitted = RoundtripDetector(random_state=seed, **{"sigma": SIGMA} | settings).fit(training)
        refuse_interrupted(fitted)
        oddness, trimmed = -fitted.score_samples(test), fitted.n_trimmed_
    return {
        "precision_at_k": precision_at_k(oddness, outlier),
        "auroc": float(roc_auc_score(outlier, oddness)),
        "average_precision": float(average_precision_score(outlier, oddness)),
        "trimmed": trimmed,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=2, help="for planted outliers")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, help="only these")
    parser.add_argument("--planted", action="store_true", help="planted outliers only")
    arguments = parser.parse_args()
    request = Request("outlier-ablation", data_home=arguments.data)
    names = [name for name in VARIANTS if arguments.variants is None or name in arguments.variants]
    datasets = PLANTED if arguments.planted else [*PLANTED, *DATASETS]
    runs = request.runs()
    seeds = {each: arguments.seeds if each in PLANTED else REAL_SEEDS for each in datasets}
    log = Log(len(names) * sum(seeds.values()))
    records = {
        (name, dataset): [
            log.run(
                runs,
                key(name, dataset, seed),
                partial(measure, dataset, name, seed, arguments.data),
                "precision_at_k",
            )
            for seed in range(seeds[dataset])
        ]
        for dataset in datasets
        for name in names
    }

    def mean(name, chosen, what):
        return np.mean([record[what] for each in chosen for record in records[name, each]])

    def by_kind(kind):
        return [dataset for dataset in PLANTED if dataset.endswith(f", {kind}")]

    planted_rows = [
        [
            name,
            *(f"{mean(name, by_kind(kind), 'average_precision'):.3f}" for kind in KINDS),
            f"{mean(name, PLANTED, 'average_precision'):.3f}",
        ]
        for name in names
    ]

    def of_real(name, dataset):
        precision, auroc = (mean(name, [dataset], what) for what in ("precision_at_k", "auroc"))
        return f"{precision:.3f} / {auroc:.3f}"

    parts = [
        "# The outlier detector with one thing changed",
        f"{arguments.seeds} seed(s). The detector's own noise is of width {SIGMA:g}; "
        "variants that do not name another have it, too.",
        f"## Planted outliers: average precision, mean over {', '.join(TABLES)}",
        markdown_table(["variant", *KINDS, "mean"], planted_rows),
    ]
    if not arguments.planted:
        real = [[name, *(of_real(name, dataset) for dataset in DATASETS)] for name in names]
        parts += [
            f"## Real outliers, {REAL_SEEDS} seed: precision at k / area under the ROC curve",
            markdown_table(["variant", *DATASETS], real),
        ]
    text = "\n\n".join(parts)
    request.write_text("outlier-ablation.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
