"""What a log density costs: the adaptive method against the paper's proposal and pyroundtrip.

    python benchmarks/scoring_paper.py --data FOLDER   # it holds casp.npz; or set ROUNDTRIP_DATA

Four parts, each printed and written to benchmarks/results/scoring_paper.json once it is done; parts
that are there already are not repeated (--fresh: start anew). Fitted networks are kept in .cache/.

evaluations  evaluations of G for a root-mean-square error of 0.1 nats, paper preset and default
             preset fitted to CASP, the same network and rows for both methods
time         seconds per point against pyroundtrip 2.0.1 with 40,000 samples, paper's networks, at
             the loosest tolerance whose error is no larger than that of the published weights
scaling      seconds and peak memory against the number of rows, small network
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from training_speed import reference_python

from roundtrip import DensityWarning, Roundtrip, RoundtripModel, load
from roundtrip.density import estimate
from roundtrip.density.importance import log_weights
from roundtrip.density.proposals import student_t_draws, student_t_log_prob
from roundtrip.density.randomness import row_generators
from roundtrip.density.starts.bank import BANK_SIZE
from roundtrip.io.atomic import atomic_write
from roundtrip.model.networks import mlp

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "scoring_paper.json"
CACHE = HERE.parent / ".cache" / "scoring"
TARGET = 0.1
ROWS = slice(1000, 1050)
"""Of the test set."""
DRAW_SEED = 7
ADAPTIVE_SEEDS = range(7, 13)
"""Errors are pooled over several runs: a single row may decide those of one."""
REFERENCE_DRAWS = 100_000
PAPER_SCALES = (0.005, 0.01, 0.1, 0.5, 1.0)
"""The grid of the authors' code, from which it takes the best on validation data."""
PAPER_DRAWS = 20_000
LONG_PAPER_DRAWS = 120_000
"""For the two scales that are best after PAPER_DRAWS."""
PUBLISHED_DRAWS = 40_000
TOLERANCES = (0.8, 0.4, 0.2, 0.14, 0.1, 0.08, 0.065, 0.05, 0.04)
TIMED_ROWS = 500
PRESETS = {
    "paper": lambda: Roundtrip.paper(latent_dim=5, random_state=0, verbose=1),
    "default": lambda: Roundtrip(latent_dim=5, random_state=0, verbose=1),
}


def casp(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows, shuffled with a fixed seed, in [0, 1]."""
    X = np.load(folder / "casp.npz")["X"]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    X = np.random.default_rng(0).permutation(X)
    return X[: int(0.9 * len(X))], X[int(0.9 * len(X)) :]


def fitted(preset: str, train: np.ndarray) -> Roundtrip:
    path = CACHE / f"casp-{preset}.rt"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        PRESETS[preset]().fit(train).save(path)
    return load(path)


def rmse(values: np.ndarray, reference: np.ndarray) -> float:
    return float(np.sqrt(np.mean((values - reference) ** 2)))


def needed(cost: list[float], errors: list[float]) -> float | None:
    """Cost at which the error, falling with cost, passes TARGET (interpolated in logarithms).

    The smallest cost if that is enough already; None if the largest is not.
    """
    if errors[0] <= TARGET:
        return cost[0]
    for left in range(len(cost) - 1):
        if errors[left] >= TARGET >= errors[left + 1]:
            x, y = np.log(cost[left : left + 2]), np.log(errors[left : left + 2])
            return float(np.exp(np.interp(-np.log(TARGET), -y, x)))
    return None


def paper_log_weights(model: RoundtripModel, x: np.ndarray, scale: float, draws: int) -> Tensor:
    blocks = log_weights(
        model, torch.from_numpy(x), n_samples=draws, scale=scale, df=1.0, seed=DRAW_SEED
    )
    return torch.cat(list(blocks))


def errors_by_draws(log_weight: Tensor, sizes: list[int], reference: np.ndarray) -> list[float]:
    """Errors of estimates from n draws, pooled over as many separate blocks of n as there are."""
    errors = []
    for n in sizes:
        blocks = log_weight[:, : log_weight.shape[1] // n * n].unflatten(1, (-1, n))
        values = (torch.logsumexp(blocks, 2) - np.log(n)).numpy()
        errors.append(rmse(values, reference[:, None]))
    return errors


def published_error(log_weight: Tensor, x: np.ndarray, dim: int, reference: np.ndarray) -> float:
    """Error of the authors' code: draws divided by a product of univariate t densities."""
    rows = []
    for weights, rng in zip(log_weight, row_generators(x, DRAW_SEED), strict=True):
        draws, log_prob = student_t_draws(log_weight.shape[1], dim, 1.0, rng)
        univariate = student_t_log_prob(draws[..., None], 1.0).sum(-1)
        rows.append((weights + log_prob - univariate)[:PUBLISHED_DRAWS])
    return errors_by_draws(torch.stack(rows), [PUBLISHED_DRAWS], reference)[0]


def paper_errors(model: RoundtripModel, x: np.ndarray, reference: np.ndarray) -> dict:
    """Error of the paper's proposal by scale and number of draws, from one long run per scale."""
    curves = {}
    for scale in PAPER_SCALES:
        weights = paper_log_weights(model, x, scale, PAPER_DRAWS)
        curves[scale] = error_curve(weights, reference)
    published = {}
    for scale in sorted(curves, key=lambda scale: curves[scale]["rmse"][-1])[:2]:
        weights = paper_log_weights(model, x, scale, LONG_PAPER_DRAWS)
        curves[scale] = error_curve(weights, reference)
        published[scale] = published_error(weights, x, model.latent_dim, reference)
    return {"by_scale": curves, "published_rmse_by_scale": published}


def error_curve(log_weight: Tensor, reference: np.ndarray) -> dict:
    sizes = [int(size) for size in np.geomspace(100, log_weight.shape[1], 16)]
    return {"draws": sizes, "rmse": errors_by_draws(log_weight, sizes, reference)}


def evaluations(folder: Path, preset: str) -> dict:
    train, test = casp(folder)
    est = fitted(preset, train)
    x = est.schema_.scaling.apply(test[ROWS])
    model = est.model_.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        long_run = estimate(model, x, tol=1e-9, max_evaluations=REFERENCE_DRAWS, random_state=101)
        reference = long_run.log_density
        paper = paper_errors(model, x, reference)
        runs = [
            [estimate(model, x, tol=tol, random_state=seed) for seed in ADAPTIVE_SEEDS]
            for tol in TOLERANCES
        ]
    costs = [float(np.mean([run.n_evaluations for run in of_tol])) for of_tol in runs]
    errors = [rmse(np.stack([run.log_density for run in of_tol]), reference) for of_tol in runs]
    curves = paper["by_scale"]
    by_scale = {scale: needed(curve["draws"], curve["rmse"]) for scale, curve in curves.items()}
    reached = [n for n in by_scale.values() if n is not None]
    paper_needed = min(reached) if reached else None
    own_needed = needed(costs, errors)
    return {
        "sigma": est.sigma_ if preset == "paper" else None,
        "reference_median_std_error": float(np.median(long_run.std_error)),
        "paper": paper,
        "paper_needed_by_scale": by_scale,
        "paper_needed": paper_needed,
        "adaptive": {
            "tol": TOLERANCES,
            "evaluations": costs,
            "rmse": errors,
            "converged": [float(np.mean([run.converged for run in of_tol])) for of_tol in runs],
        },
        "adaptive_needed": own_needed,
        "bank_evaluations_once_a_call": BANK_SIZE,
        "ratio": (paper_needed or LONG_PAPER_DRAWS) / own_needed if own_needed else None,
        "ratio_is_a_lower_bound": paper_needed is None,
    }


def loosest_tolerance(result: dict) -> tuple[float, float, float]:
    """Published error (best of the scales), and the tolerance with its error that is no worse."""
    published = min(result["paper"]["published_rmse_by_scale"].values())
    own = result["adaptive"]
    tol, error = next(
        (tol, error)
        for tol, error in zip(own["tol"], own["rmse"], strict=True)
        if error <= published
    )
    return published, tol, error


def time_a_point(folder: Path, python: Path, measured: dict) -> dict:
    train, test = casp(folder)
    est = fitted("paper", train)
    x = est.schema_.scaling.apply(test[:TIMED_ROWS])
    published, tol, error = loosest_tolerance(measured)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        estimate(est.model_, x[:16], tol=tol)  # warm up, as reference_score.py does
        start = time.perf_counter()
        estimate(est.model_, x, tol=tol)
        own = (time.perf_counter() - start) / len(x)
    points = 5
    done = subprocess.run(
        [str(part) for part in (python, HERE / "reference_score.py", 9, 5, points)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    reference = json.loads(done.stdout.splitlines()[-1]) / points
    return {
        "roundtrip_seconds": own,
        "roundtrip_tol": tol,
        "roundtrip_rmse": error,
        "pyroundtrip_rmse": published,
        "pyroundtrip_seconds": reference,
        "ratio": reference / own,
    }


def scaling() -> list[dict]:
    """Each size in a process of its own, so that peak memory is its own."""
    rows = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        done = subprocess.run(
            [sys.executable, __file__, "--scaling-rows", str(n)],
            check=True,
            capture_output=True,
            text=True,
        )
        rows.append(json.loads(done.stdout))
    return rows


def scale_once(rows: int) -> None:
    rng = torch.Generator().manual_seed(0)
    model = RoundtripModel(mlp(2, 3, (32, 32), rng=rng), mlp(3, 2, (32, 32), rng=rng), 2, 0.3)
    z = torch.randn(rows, 2, generator=rng)
    with torch.no_grad():
        x = model.generate(z).double() + 0.3 * torch.randn(rows, 3, generator=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        estimate(model, x[:500])  # warm up
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        result = estimate(model, x)
        seconds = time.perf_counter() - start
    print(
        json.dumps(
            {
                "rows": rows,
                "seconds": seconds,
                "microseconds_a_row": 1e6 * seconds / rows,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "peak_mb_before": before / 1024,
                "converged": float(result.converged.mean()),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("ROUNDTRIP_DATA"))
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--reference-python", type=Path, help="an interpreter with pyroundtrip")
    parser.add_argument("--scaling-rows", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.scaling_rows:
        scale_once(arguments.scaling_rows)
        return
    if arguments.data is None:
        parser.error("say with --data (or ROUNDTRIP_DATA) which folder holds casp.npz")
    folder = Path(arguments.data)
    parts = {
        "evaluations paper": lambda: evaluations(folder, "paper"),
        "time": lambda: time_a_point(
            folder,
            arguments.reference_python or reference_python(),
            results["evaluations paper"],
        ),
        "evaluations default": lambda: evaluations(folder, "default"),
        "scaling": scaling,
    }
    results = {}
    if RESULTS.exists() and not arguments.fresh:
        results = json.loads(RESULTS.read_text())
    results["setting"] = {
        "rows": ROWS.stop - ROWS.start,
        "reference_draws": REFERENCE_DRAWS,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    for name, part in parts.items():
        if name not in results:
            results[name] = part()
            with atomic_write(RESULTS) as temporary:
                temporary.write_text(json.dumps(results, indent=2) + "\n")
        print(f"== {name}\n{report(results[name])}")


def report(result: dict | list) -> str:
    if isinstance(result, list):
        return "\n".join(
            f"{r['rows']:>9,} rows {r['seconds']:8.1f} s, "
            f"{r['microseconds_a_row']:.0f} µs per row, "
            f"peak {r['peak_mb']:.0f} MB ({r['peak_mb_before']:.0f} MB before)"
            for r in result
        )
    if "pyroundtrip_seconds" in result:
        return (
            f"roundtrip {result['roundtrip_seconds']:.4f} s per point at tol "
            f"{result['roundtrip_tol']}, rmse {result['roundtrip_rmse']:.3f}; pyroundtrip "
            f"{result['pyroundtrip_seconds']:.2f} s, rmse {result['pyroundtrip_rmse']:.3f}: "
            f"{result['ratio']:.0f} times less"
        )
    own = result["adaptive"]
    lines = [
        f"sigma {result['sigma']}; error of the reference about "
        f"{result['reference_median_std_error']:.4f}",
        *(
            f"adaptive, tol {tol}: {cost:.0f} evaluations, rmse {error:.3f}"
            for tol, cost, error in zip(own["tol"], own["evaluations"], own["rmse"], strict=True)
        ),
        *(
            f"paper's proposal, scale {scale}: rmse {curve['rmse'][-1]:.3f} with "
            f"{curve['draws'][-1]:,}, {TARGET} at {n}"
            for (scale, curve), n in zip(
                result["paper"]["by_scale"].items(),
                result["paper_needed_by_scale"].values(),
                strict=True,
            )
        ),
        *(
            f"published weights, scale {scale}: rmse {error:.3f} with {PUBLISHED_DRAWS:,}"
            for scale, error in result["paper"]["published_rmse_by_scale"].items()
        ),
        f"for {TARGET} nats: adaptive {result['adaptive_needed']}, paper {result['paper_needed']}, "
        f"ratio {'at least ' if result['ratio_is_a_lower_bound'] else ''}{result['ratio']}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
