"""Held-out log-likelihood on real tables: Roundtrip against the baselines at equal wall time.

    python benchmarks/likelihood.py --data FOLDER --budget 180      # or set ROUNDTRIP_DATA

FOLDER holds arem.npz, casp.npz and bank-full.csv.gz. Every method gets the same rows, scaled to
[0, 1] and spread over their rounding (AReM by ±0.005, the count F8 of CASP by ±0.5, BANK by ±0.2
of a code or count), the same validation rows and the same seconds for fitting. Roundtrip's
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
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

from roundtrip import DensityWarning, Roundtrip
from roundtrip.atomic import atomic_write
from roundtrip.baselines import BASELINES

RESULTS = Path(__file__).parent / "results" / "likelihood.json"
NUMERIC_BANK = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
METHODS = {"Roundtrip": Roundtrip, **BASELINES}


def read_arem(folder: Path, rng: np.random.Generator) -> np.ndarray:
    X = np.load(folder / "arem.npz")["X"]
    return X + rng.uniform(-0.005, 0.005, X.shape)


def read_casp(folder: Path, rng: np.random.Generator) -> np.ndarray:
    X = np.load(folder / "casp.npz")["X"]
    X[:, 7] += rng.uniform(-0.5, 0.5, len(X))
    return X


def read_bank(folder: Path, rng: np.random.Generator) -> np.ndarray:
    frame = pd.read_csv(folder / "bank-full.csv.gz", sep=";").drop(columns="y")
    codes = [
        frame[name] if name in NUMERIC_BANK else pd.factorize(frame[name], sort=True)[0]
        for name in frame
    ]
    X = np.stack([np.asarray(column, dtype=float) for column in codes], axis=1)
    return X + rng.uniform(-0.2, 0.2, X.shape)


DATASETS = {"AReM": read_arem, "CASP": read_casp, "BANK": read_bank}


def splits(folder: Path, dataset: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test rows (81, 9 and 10 per cent)."""
    rng = np.random.default_rng(seed)
    X = rng.permutation(DATASETS[dataset](folder, rng))
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    n_test = round(0.1 * len(X))
    n_validation = round(0.1 * (len(X) - n_test))
    return X[n_test + n_validation :], X[n_test : n_test + n_validation], X[:n_test]


def two_sample_accuracy(real: np.ndarray, generated: np.ndarray, seed: int) -> float:
    rows = np.concatenate([real, generated])
    is_real = np.repeat([1, 0], [len(real), len(generated)])
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    trees = HistGradientBoostingClassifier(random_state=seed)
    return float(cross_val_score(trees, rows, is_real, cv=folds).mean())


def measure(folder: Path, dataset: str, method: str, seed: int, budget: float) -> dict:
    train, validation, test = splits(folder, dataset, seed)
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
