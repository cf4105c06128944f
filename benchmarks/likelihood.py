"""Held-out log-likelihood on real tables: Roundtrip against the baselines at equal wall time.

    python benchmarks/likelihood.py --data FOLDER --budget 180      # or set ROUNDTRIP_DATA

FOLDER holds the files of the data sets (see `roundtrip.datasets`). Every method gets the same rows,
scaled to [0, 1] and spread over their rounding (AReM by ±0.005, the count F8 of CASP by ±0.5, BANK
by ±0.2 of a code or count), the same validation rows and the same seconds for fitting. Roundtrip's
likelihoods are those of the adaptive estimate at a tolerance of 0.05. The two-sample accuracy is
that of gradient-boosted trees telling test rows from as many samples (0.5: they can't; 5-fold).
Each result is written to benchmarks/results/likelihood.json once it is there, and not computed
again: an interrupted run goes on where it stopped.
"""

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

from roundtrip import DensityWarning, Roundtrip
from roundtrip.atomic import atomic_write
from roundtrip.baselines import BASELINES
from roundtrip.datasets import load_arem, load_bank, load_casp

RESULTS = Path(__file__).parent / "results" / "likelihood.json"
METHODS = {"Roundtrip": Roundtrip, **BASELINES}


DATASETS = {"AReM": load_arem, "CASP": load_casp, "BANK": load_bank}


def two_sample_accuracy(real: np.ndarray, generated: np.ndarray, seed: int) -> float:
    rows = np.concatenate([real, generated])
    is_real = np.repeat([1, 0], [len(real), len(generated)])
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    trees = HistGradientBoostingClassifier(random_state=seed)
    return float(cross_val_score(trees, rows, is_real, cv=folds).mean())


def measure(folder: Path, dataset: str, method: str, seed: int, budget: float) -> dict:
    data = DATASETS[dataset](data_home=folder, random_state=seed, dequantize=True)
    train, validation, test = data.train, data.validation, data.test
    est = METHODS[method](random_state=seed)
    start = time.perf_counter()
    est.fit(train, validation_data=validation, max_time=budget)
    fit_seconds = time.perf_counter() - start
    start = time.perf_counter()
    result = {}
    if isinstance(est, Roundtrip):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensityWarning)
            estimate = est.density(test, tol=0.05)
        scores = estimate.log_density
        result = {
            "converged": float(estimate.converged.mean()),
            "median_std_error": float(np.median(estimate.std_error)),
            "latent_dim": est.latent_dim_,
            "latent_dims_tried": list(est.latent_dims_tried_.items()),
        }
    else:
        scores = est.score_samples(test)
    score_seconds = time.perf_counter() - start
    return {
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "budget": budget,
        "log_likelihood": float(scores.mean()),
        "test_rows": len(test),
        "standard_error_over_rows": float(scores.std(ddof=1) / np.sqrt(len(scores))),
        "fit_seconds": fit_seconds,
        "score_seconds": score_seconds,
        "two_sample_accuracy": two_sample_accuracy(test, est.sample(len(test), seed), seed),
        "epochs": getattr(est, "n_iter_", None),
        **result,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
    }


def table(results: list[dict], quantity: str) -> str:
    """Mean over seeds ± its standard error, a row a method, a column a data set."""
    lines = ["| method | " + " | ".join(DATASETS) + " |", "|---" * (1 + len(DATASETS)) + "|"]
    for method in METHODS:
        cells = []
        for dataset in DATASETS:
            values = [
                r[quantity] for r in results if (r["dataset"], r["method"]) == (dataset, method)
            ]
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            cells.append(f"{np.mean(values):.3f} ± {error:.3f}" if values else "")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("ROUNDTRIP_DATA"))
    parser.add_argument("--budget", type=float, default=180.0, help="seconds a fit")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("say with --data (or ROUNDTRIP_DATA) which folder holds the tables")
    folder = Path(arguments.data)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for seed in range(arguments.seeds):
        for dataset in arguments.datasets:
            for method in arguments.methods:
                key = (dataset, method, seed, arguments.budget)
                if any((r["dataset"], r["method"], r["seed"], r["budget"]) == key for r in results):
                    continue
                results.append(measure(folder, dataset, method, seed, arguments.budget))
                with atomic_write(RESULTS) as temporary:
                    temporary.write_text(json.dumps(results, indent=2) + "\n")
                last = results[-1]
                print(
                    f"{dataset} {method} seed {seed}: {last['log_likelihood']:.3f} "
                    f"({last['fit_seconds']:.0f} s, scored in {last['score_seconds']:.0f} s)",
                    flush=True,
                )
    done = [r for r in results if r["budget"] == arguments.budget]
    for quantity in ("log_likelihood", "two_sample_accuracy"):
        print(f"\n{quantity.replace('_', ' ')}\n{table(done, quantity)}")


if __name__ == "__main__":
    main()
