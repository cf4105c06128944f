"""Which way of joining the paper's losses and the likelihood bound is best.

    python benchmarks/hybrid.py --data FOLDER      # or set ROUNDTRIP_DATA

Compared at equal time on rows of CASP and of the octagon mixture that no fit has seen (of CASP its
validation part, so that nothing is chosen by test rows): the likelihood alone, the sum of both with
several weights of the bound, and almost adversarial training for a third of the time, likelihood
for the rest, which is what objective="hybrid" does. Results go to results/hybrid; an interrupted
run resumes where it stopped.
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

from roundtrip import Hybrid, Roundtrip
from roundtrip.datasets import load_casp, make_octagon_mixture
from roundtrip.reproduce.fits import TOL, log_density, settings_name
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log
from roundtrip.reproduce.table1 import two_sample_accuracy
from roundtrip.training.run import fit_model

WEIGHTS = (0.1, 1.0, 10.0)
LIKELIHOOD, FIRST = "likelihood alone", "adversarial losses first, likelihood after"
SUMS = {f"sum, bound weighs {weight:g}": weight for weight in WEIGHTS}
VARIANTS = [LIKELIHOOD, *SUMS, FIRST]
DATASETS = ("CASP", "octagon")
SCORED_ROWS = 1000


def rows_of(dataset, seed, data_home):
    """Rows to fit and rows to compare by."""
    if dataset == "CASP":
        data = load_casp(data_home=data_home, random_state=seed, dequantize=True)
        return data.train, data.validation
    X = make_octagon_mixture(20_000, random_state=seed).X
    return X[2000:], X[:2000]


def fit_first_stage(options, data, **arguments):
    """The first stage of "hybrid" from start to end: the paper's losses plus the bound."""
    return fit_model(replace(options, objective=options.objective.first_stage), data, **arguments)


def fitted(variant, X, seed, seconds):
    """An estimator fitted in this way; the sums, too, choose the latent dimension by likelihood."""
    if variant not in SUMS:
        objective = "likelihood" if variant == LIKELIHOOD else "hybrid"
        return Roundtrip(objective=objective, random_state=seed).fit(X, max_time=seconds)
    est = Roundtrip(objective=Hybrid(bound_weight=SUMS[variant]), random_state=seed)
    with patch("roundtrip.training.plan._fit_hybrid", fit_first_stage):
        return est.fit(X, max_time=seconds)


def measure(dataset, variant, seed, seconds, data_home):
    X, unseen = rows_of(dataset, seed, data_home)
    est = fitted(variant, X, seed, seconds)
    scores, details = log_density(est, unseen[:SCORED_ROWS], quick=False, tol=TOL)
    return {
        "log_likelihood": float(scores.mean()),
        "two_sample_accuracy": two_sample_accuracy(unseen, est.sample(len(unseen), seed), seed),
        "epochs": est.n_iter_,
        **details,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per fit")
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    request = Request("hybrid", data_home=arguments.data)
    runs = request.runs()
    log = Log(len(VARIANTS) * len(DATASETS) * arguments.seeds)
    table = []
    for variant in VARIANTS:
        cells = [variant]
        for dataset in DATASETS:
            records = [
                log.run(
                    runs,
                    {
                        "variant": variant,
                        "dataset": dataset,
                        "seed": seed,
                        "budget": arguments.budget,
                        "settings": settings_name(Roundtrip(objective="hybrid")),
                    },
                    partial(measure, dataset, variant, seed, arguments.budget, arguments.data),
                    "log_likelihood",
                )
                for seed in range(arguments.seeds)
            ]
            for quantity, digits in (("log_likelihood", 2), ("two_sample_accuracy", 3)):
                cells.append(", ".join(f"{record[quantity]:.{digits}f}" for record in records))
        table.append(cells)
    header = ["training"]
    for dataset in DATASETS:
        header += [f"{dataset}: log-likelihood", "two-sample accuracy"]
    threads = runs.records[-1]["threads"]
    text = "# Adversarial losses and likelihood together\n\n"
    text += (
        f"{arguments.budget:g} s a fit, {threads} thread(s), a figure a seed; rows that no fit has "
        "seen. Accuracy: how often trees tell them from samples (0.5: they can't).\n\n"
    )
    text += markdown_table(header, table) + "\n"
    request.write_text("hybrid.md", text)
    print(text)


if __name__ == "__main__":
    main()
