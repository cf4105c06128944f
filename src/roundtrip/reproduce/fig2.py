"""Fig. 2: the three simulated densities, true and as each method estimates them."""

import time
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from roundtrip.atomic import atomic_write
from roundtrip.datasets import SimulatedData
from roundtrip.density import DensityWarning
from roundtrip.estimator import Roundtrip
from roundtrip.plots import density_grid
from roundtrip.reproduce.methods import FIGURE_METHODS, PAPER, make_method
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log, Runs
from roundtrip.reproduce.simulations import MIXTURE_SD, ROWS, SIMULATIONS, TEST_ROWS

BUDGET, PAPER_BUDGET, QUICK_BUDGET = 120.0, 900.0, 3.0
CELLS, QUICK_CELLS = 100, 30
PICTURE_EVALUATIONS = 1500
QUICK_ROWS, QUICK_TEST_ROWS = 3000, 300
MIXTURE = f"mixture, sd {MIXTURE_SD}"


def fig2(request: Request) -> str:
    """Fit every method to every simulation; the picture, and the table in Markdown."""
    runs, methods = request.runs, request.chosen(FIGURE_METHODS)
    log = Log(len(SIMULATIONS) * len(methods), quiet=request.quiet)
    for dataset in SIMULATIONS:
        for method in methods:
            key = _key(request, dataset, method)
            log.run(runs, key, partial(_measure, request, key), "gap_to_truth")
    request.write_figure(_picture(request, methods))
    text = _page(request, runs, methods)
    request.write_text("fig2.md", text)
    return text


def _key(request: Request, dataset: str, method: str) -> dict[str, Any]:
    budget = request.seconds(method, own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET)
    return {"dataset": dataset, "method": method, "seed": 0, "budget": budget}


def _measure(request: Request, key: Mapping[str, Any]) -> dict[str, Any]:
    dataset, seed = key["dataset"], key["seed"]
    rows, test_rows = (QUICK_ROWS, QUICK_TEST_ROWS) if request.quick else (ROWS, TEST_ROWS)
    data = SIMULATIONS[dataset].make(rows, seed)
    test, train = data.X[:test_rows], data.X[test_rows:]
    est = make_method(key["method"], seed=seed, latent_dim=2, scale=None)
    start = time.perf_counter()
    est.fit(train, max_time=key["budget"])
    seconds = time.perf_counter() - start
    with warnings.catch_warnings():
        # Far from all data an estimate may not be certain; there the picture is dark anyway.
        warnings.simplefilter("ignore", DensityWarning)
        gap = est.score_samples(test) - data.log_density(test)
        density = np.exp(_roughly(est, _grid(request, dataset)))
        details = _valleys(est, data) if dataset == MIXTURE else {}
    path = _density_file(request, dataset, key["method"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        np.save(temporary, density.astype(np.float32))
    return {
        "truth": float(data.log_density(test).mean()),
        "gap_to_truth": float(gap.mean()),
        "gap_standard_error": float(gap.std(ddof=1) / np.sqrt(len(gap))),
        "fit_seconds": seconds,
        "epochs": getattr(est, "n_iter_", None),
        "stopped_by": getattr(est, "stopped_by_", None),
        **details,
    }


def _roughly(est: Any, points: np.ndarray) -> np.ndarray:
    """Log densities to the precision of a picture."""
    if isinstance(est, Roundtrip):
        return est.density(points, tol=0.1, max_evaluations=PICTURE_EVALUATIONS).log_density
    return est.score_samples(points)


def _valleys(est: Any, data: SimulatedData) -> dict[str, float]:
    """How deep the density falls half-way between neighbouring modes of the mixture, in nats."""
    modes = np.stack(np.meshgrid([-1.0, 0, 1], [-1.0, 0, 1]), axis=-1).reshape(-1, 2)
    halves = np.stack(np.meshgrid([-0.5, 0.5], [-1.0, 0, 1]), axis=-1).reshape(-1, 2)
    valleys = np.concatenate([halves, halves[:, ::-1]])

    def depth(log_density: Any) -> float:
        return float(log_density(modes).mean() - log_density(valleys).mean())

    return {"valley_depth": depth(est.score_samples), "true_depth": depth(data.log_density)}


def _cells(request: Request) -> int:
    return QUICK_CELLS if request.quick else CELLS


def _grid(request: Request, dataset: str) -> np.ndarray:
    """Centres of the cells of the picture, `(cells², 2)`."""
    reach, cells = SIMULATIONS[dataset].reach, _cells(request)
    centres = reach * (2 * np.arange(cells) + 1 - cells) / cells
    return np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)


def _density_file(request: Request, dataset: str, method: str) -> Path:
    name = "".join(c if c.isalnum() else "-" for c in f"{dataset}--{method}")
    return request.folder / "densities" / f"{name}.npy"


def _picture(request: Request, methods: list[str]) -> Any:
    cells = _cells(request)
    panels: dict[str, dict[str, np.ndarray]] = {}
    for dataset, simulation in SIMULATIONS.items():
        truth = np.exp(simulation.make(1, 0).log_density(_grid(request, dataset)))
        panels[dataset] = {"truth": truth.reshape(cells, cells)}
        for method in methods:
            density = np.load(_density_file(request, dataset, method))
            panels[dataset][method] = density.reshape(cells, cells)
    return density_grid(panels, {name: each.reach for name, each in SIMULATIONS.items()})


def _page(request: Request, runs: Runs, methods: list[str]) -> str:
    rows = []
    for method in methods:
        records = [runs.find(_key(request, dataset, method)) or {} for dataset in SIMULATIONS]
        gaps = [f"{r['gap_to_truth']:+.3f} ± {r['gap_standard_error']:.3f}" for r in records]
        rows.append([method, *gaps, f"{records[0]['valley_depth']:.1f}"])
    first = runs.find(_key(request, MIXTURE, methods[0])) or {}
    rows.append(["truth", *("0" for _ in SIMULATIONS), f"{first['true_depth']:.1f}"])
    header = ["method", *(f"{name}: gap, nats" for name in SIMULATIONS), "valley depth, nats"]
    budget, paper = (_key(request, MIXTURE, method)["budget"] for method in ("KDE", PAPER))
    settings = (
        f"{QUICK_ROWS if request.quick else ROWS:,} points, a tenth held out; seed 0; seconds a "
        f"fit: {budget:g}, the paper's preset {paper:g}; {first['threads']} threads. The mixture "
        f"has components of sd {MIXTURE_SD} (the paper prints 0.5, at which there are no separate "
        "modes)."
    )
    if request.quick:
        settings += " Quick run: few points and a coarse grid; its figures mean little."
    parts = [
        "# Fig. 2: simulated densities",
        settings,
        markdown_table(header, rows),
        "Gap: mean log-likelihood of held-out points less that of the truth, ± its standard error. "
        "Valley depth: how much lower the log density of the mixture is half-way between "
        "neighbouring modes than at the modes.",
        "![true and estimated densities](fig2.png)",
    ]
    return "\n\n".join(parts) + "\n"
