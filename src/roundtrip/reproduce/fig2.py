"""Fig. 2: the three simulated densities and the estimates of each method."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import xlogy

from roundtrip.datasets import SimulatedData
from roundtrip.estimator import Roundtrip
from roundtrip.io.atomic import atomic_write
from roundtrip.plots import density_grid
from roundtrip.reproduce.fits import (
    QUICK_EVALUATIONS,
    certainty,
    estimate_density,
    file_name,
    fitted,
    log_density,
    machine,
    settings_name,
    told,
    tolerance,
)
from roundtrip.reproduce.methods import FIGURE_METHODS, PAPER, make_method
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log, Runs
from roundtrip.reproduce.simulations import MIXTURE, MIXTURE_SD, SIMULATIONS, sizes

BUDGET, PAPER_BUDGET, QUICK_BUDGET = 120.0, 600.0, 3.0
CELLS, QUICK_CELLS = 100, 24
PICTURE_TOL = 0.02


def fig2(request: Request) -> str:
    """Fit every method to every simulation; returns the page in Markdown."""
    request.refuse("seeds")
    runs, methods = request.runs(), request.chosen(FIGURE_METHODS)
    log = Log(len(SIMULATIONS) * len(methods), quiet=request.quiet)
    for dataset in SIMULATIONS:
        for method in methods:
            key = run_key(request, dataset, method)
            if not _density_file(request, key).exists():
                runs.forget(key)  # computed again: its panel of the picture is missing
            log.run(runs, key, partial(_measure, request, key), "gap_to_truth")
    request.write_figure(_picture(request, methods))
    text = _page(request, runs, methods)
    request.write_text("fig2.md", text)
    return text


def run_key(request: Request, dataset: str, method: str) -> dict[str, Any]:
    """Key of a run in the file of results."""
    budget = request.seconds(method, own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET)
    settings = settings_name(_estimator(request, method))
    return {
        "dataset": dataset,
        "method": method,
        "seed": 0,
        "budget": budget,
        "settings": settings,
    }


def _estimator(request: Request, method: str) -> Any:
    return make_method(method, seed=0, latent_dim=2, scale=None, quick=request.quick)


def fitted_simulation(
    request: Request, key: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], SimulatedData]:
    """Estimator of a run, the record of its fit, and the data, whose first rows are held out."""
    rows, test_rows = sizes(quick=request.quick)
    data = SIMULATIONS[key["dataset"]].make(rows, key["seed"])
    return *fitted(request, key, _estimator(request, key["method"]), data.X[test_rows:]), data


def _measure(request: Request, key: Mapping[str, Any]) -> dict[str, Any]:
    dataset = key["dataset"]
    est, record, data = fitted_simulation(request, key)
    test = data.X[: sizes(quick=request.quick)[1]]
    tol = tolerance(key["method"])
    scores, details = log_density(est, test, quick=request.quick, tol=tol)
    gap = scores - data.log_density(test)
    # The paper's preset is far from the truth: its picture needs no precise estimates.
    tol = tol if request.quick or key["method"] == PAPER else PICTURE_TOL
    cells, cells_error = _cell_densities(request, est, dataset, tol)
    path = _density_file(request, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        np.save(temporary, np.exp(cells).astype(np.float32))
    return {
        "truth": float(data.log_density(test).mean()),
        "gap_to_truth": float(gap.mean()),
        "gap_standard_error": float(gap.std(ddof=1) / np.sqrt(len(gap))),
        **(_valleys(request, est, data, tolerance(key["method"])) if dataset == MIXTURE else {}),
        "cells_error": cells_error,
        **details,
        **record,
    }


def _cell_densities(
    request: Request, est: Any, dataset: str, tol: float
) -> tuple[np.ndarray, float]:
    """Log densities at the picture's cells, and their root-mean-square standard error in nats.

    The mean square is weighted by the true density: far from all points, where estimates may not
    converge, the picture is dark.
    """
    grid = _grid(request, dataset)
    if not isinstance(est, Roundtrip):
        return est.score_samples(grid), 0.0
    estimate = estimate_density(est, grid, tol=tol, evaluations=QUICK_EVALUATIONS)
    variance = np.average(estimate.std_error**2, weights=_truth(request, dataset))
    return estimate.log_density, float(np.sqrt(variance))


def _valleys(request: Request, est: Any, data: SimulatedData, tol: float) -> dict[str, float]:
    """Fall of the log density from the mixture's modes to half-way between neighbours, in nats."""
    modes = np.stack(np.meshgrid([-1.0, 0, 1], [-1.0, 0, 1]), axis=-1).reshape(-1, 2)
    halves = np.stack(np.meshgrid([-0.5, 0.5], [-1.0, 0, 1]), axis=-1).reshape(-1, 2)
    valleys = np.concatenate([halves, halves[:, ::-1]])
    at_modes, at_valleys = (
        log_density(est, x, quick=request.quick, tol=tol)[0].mean() for x in (modes, valleys)
    )
    true_depth = data.log_density(modes).mean() - data.log_density(valleys).mean()
    return {"valley_depth": float(at_modes - at_valleys), "true_depth": float(true_depth)}


def _cells(request: Request) -> int:
    return QUICK_CELLS if request.quick else CELLS


def _grid(request: Request, dataset: str) -> np.ndarray:
    """Centres of the cells of the picture, `(cells², 2)`."""
    reach, cells = SIMULATIONS[dataset].reach, _cells(request)
    centres = reach * (2 * np.arange(cells) + 1 - cells) / cells
    return np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)


def _density_file(request: Request, key: Mapping[str, Any]) -> Path:
    return request.folder / "densities" / f"{file_name(key)}.npy"


def _picture(request: Request, methods: list[str]) -> Any:
    cells = _cells(request)
    panels: dict[str, dict[str, np.ndarray]] = {}
    for dataset in SIMULATIONS:
        panels[dataset] = {"truth": _truth(request, dataset).reshape(cells, cells)}
        for method in methods:
            density = _estimated(request, dataset, method)
            panels[dataset][method] = density.reshape(cells, cells)
    return density_grid(panels, {name: each.reach for name, each in SIMULATIONS.items()})


def _truth(request: Request, dataset: str) -> np.ndarray:
    return np.exp(SIMULATIONS[dataset].make(1, 0).log_density(_grid(request, dataset)))


def _estimated(request: Request, dataset: str, method: str) -> np.ndarray:
    return np.load(_density_file(request, run_key(request, dataset, method))).astype(np.float64)


def divergence(truth: np.ndarray, estimated: np.ndarray, area: float) -> float:
    """KL(truth ‖ estimated) in nats from densities at the centres of cells of equal area.

    The term -p + q makes the contribution of every cell non-negative, also if some mass lies
    outside the cells.

    >>> divergence(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 1.0)
    0.0
    """
    ratio = truth / np.maximum(estimated, np.finfo(np.float32).tiny)
    return float((xlogy(truth, ratio) - truth + estimated).sum() * area)


def _page(request: Request, runs: Runs, methods: list[str]) -> str:
    records = {
        method: [runs[run_key(request, dataset, method)] for dataset in SIMULATIONS]
        for method in methods
    }
    rows = []
    for method, found in records.items():
        gaps = [f"{r['gap_to_truth']:+.3f} ± {r['gap_standard_error']:.3f}" for r in found]
        seconds = "/".join(f"{r['fit_seconds']:.0f}" for r in found)
        rows.append([method, *gaps, f"{found[0]['valley_depth']:.1f}", seconds])
    first = records[methods[0]][0]
    shown = [record for found in records.values() for record in found]
    rows.append(["truth", *("0" for _ in SIMULATIONS), f"{first['true_depth']:.1f}", ""])
    gaps_header = (f"{name}: gap, nats" for name in SIMULATIONS)
    header = ["method", *gaps_header, "valley depth, nats", "fit, s"]

    cells_error = ", ".join(
        f"{max(record['cells_error'] for record in found):.3f} for {method}"
        for method, found in records.items()
        if any(record["cells_error"] for record in found)
    )

    def of_cells(dataset: str, method: str) -> float:
        area = (2 * SIMULATIONS[dataset].reach / _cells(request)) ** 2
        return divergence(_truth(request, dataset), _estimated(request, dataset, method), area)

    divergences = [
        [method, *(f"{of_cells(dataset, method):.3f}" for dataset in SIMULATIONS)]
        for method in methods
    ]
    points, held_out = sizes(quick=request.quick)
    limits = request.limits(own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET)
    settings = (
        f"{points:,} points, {held_out:,} of them held out; seed 0; {limits}; "
        f"{certainty(shown)}; {machine(shown)}. The mixture has components of "
        f"sd {MIXTURE_SD} (the paper prints 0.5, at which there are no separate modes)."
    )
    if request.quick:
        settings += (
            f" Quick run: few points, {QUICK_CELLS} x {QUICK_CELLS} cells, at most "
            f"{QUICK_EVALUATIONS} evaluations of G a row, hardly any training; it means little."
        )
    parts = [
        "# Fig. 2: simulated densities",
        settings,
        markdown_table(header, rows),
        "Gap: mean log-likelihood of held-out points less that of the truth, ± its standard error. "
        "Valley depth: how much lower the log density of the mixture is half-way between "
        "neighbouring modes than at the modes.",
        "KL(truth ‖ estimate) in nats, integrated over the picture's cells. The standard error of "
        f"their log densities adds half its square; it is at most, in nats: {cells_error or 0}.",
        markdown_table(["method", *SIMULATIONS], divergences),
    ]
    for dataset, record in zip(SIMULATIONS, records.get(PAPER, []), strict=False):
        parts.append(f"Paper's preset on {dataset}: {told(record)}.")
    parts.append("![true and estimated densities](fig2.png)")
    return "\n\n".join(parts) + "\n"
