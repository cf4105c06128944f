"""Fig. S2: rank correlation with the true density as the dimension grows."""

import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

from scipy.stats import spearmanr

from roundtrip.datasets import make_independent_mixture
from roundtrip.density import DensityWarning
from roundtrip.plots import lines
from roundtrip.reproduce.methods import FIGURE_METHODS, PAPER, make_method
from roundtrip.reproduce.published import SPEARMAN_AT_10
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log, Runs
from roundtrip.reproduce.simulations import MIXTURE_SD, ROWS, TEST_ROWS

BUDGET, PAPER_BUDGET, QUICK_BUDGET = 60.0, 300.0, 4.0
DIMENSIONS, QUICK_DIMENSIONS = tuple(range(2, 11)), (2, 10)
QUICK_ROWS, QUICK_TEST_ROWS = 3000, 300
LAPLACE = f"{PAPER}, Laplace"


def fig_s2(request: Request) -> str:
    """Fit every method at every dimension; the picture, and the table in Markdown."""
    runs, methods = request.runs, request.chosen(FIGURE_METHODS)
    dimensions = QUICK_DIMENSIONS if request.quick else DIMENSIONS
    log = Log(len(dimensions) * len(methods), quiet=request.quiet)
    for dimension in dimensions:
        for method in methods:
            key = _key(request, dimension, method)
            log.run(runs, key, partial(_measure, request, key), "spearman")
    curves = _curves(request, runs, methods, dimensions)
    request.write_figure(
        lines(curves, x_label="dimension", y_label="Spearman correlation with the true density")
    )
    text = _page(request, runs, curves, dimensions)
    request.write_text("figS2.md", text)
    return text


def _key(request: Request, dimension: int, method: str) -> dict[str, Any]:
    budget = request.seconds(method, own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET)
    return {"dimension": dimension, "method": method, "seed": 0, "budget": budget}


def _measure(request: Request, key: Mapping[str, Any]) -> dict[str, Any]:
    rows, test_rows = (QUICK_ROWS, QUICK_TEST_ROWS) if request.quick else (ROWS, TEST_ROWS)
    dimension, seed = key["dimension"], key["seed"]
    data = make_independent_mixture(rows, dim=dimension, sd=MIXTURE_SD, random_state=seed)
    test, train = data.X[:test_rows], data.X[test_rows:]
    truth = data.log_density(test)
    # The authors' latent dimension in the simulations is that of the data.
    est = make_method(key["method"], seed=seed, latent_dim=dimension, scale=None)
    start = time.perf_counter()
    est.fit(train, max_time=key["budget"])
    seconds = time.perf_counter() - start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        scores = est.score_samples(test)
    record = {
        "spearman": float(spearmanr(scores, truth).statistic),
        "log_likelihood": float(scores.mean()),
        "truth": float(truth.mean()),
        "fit_seconds": seconds,
        "stopped_by": getattr(est, "stopped_by_", None),
    }
    if key["method"] == PAPER:
        laplace = est.density(test, method="laplace").log_density
        record["spearman_laplace"] = float(spearmanr(laplace, truth).statistic)
    return record


def _curves(
    request: Request, runs: Runs, methods: list[str], dimensions: tuple[int, ...]
) -> dict[str, dict[float, float]]:
    curves: dict[str, dict[float, float]] = {}
    for method in methods:
        for dimension in dimensions:
            record = runs.find(_key(request, dimension, method)) or {}
            curves.setdefault(method, {})[dimension] = record["spearman"]
            if method == PAPER:
                curves.setdefault(LAPLACE, {})[dimension] = record["spearman_laplace"]
    return curves


def _page(
    request: Request, runs: Runs, curves: Mapping[str, Mapping[float, float]], dims: tuple[int, ...]
) -> str:
    rows = []
    for method, values in curves.items():
        published = SPEARMAN_AT_10.get(method)
        cells = [f"{values[dimension]:.3f}" for dimension in dims]
        cells.append("" if published is None else f"{published:.3f}")
        rows.append([method, *cells])
    budget, paper = (_key(request, 2, method)["budget"] for method in ("KDE", PAPER))
    settings = (
        f"{QUICK_ROWS if request.quick else ROWS:,} points of the independent mixture with "
        f"components of sd {MIXTURE_SD}, a tenth held out; seed 0; seconds a fit: {budget:g}, the "
        f"paper's preset {paper:g}; {runs.records[0]['threads']} threads."
    )
    if request.quick:
        settings += " Quick run: few points and dimensions; its figures mean little."
    return (
        "\n\n".join(
            [
                "# Fig. S2: Spearman correlation with the true density, by dimension",
                settings,
                markdown_table(["method", *map(str, dims), "paper, at 10"], rows),
                "![correlation by dimension](figS2.png)",
            ]
        )
        + "\n"
    )
