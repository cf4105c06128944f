"""Fig. S2: rank correlation with the true density as the dimension grows."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from scipy.stats import spearmanr

from roundtrip.datasets import make_independent_mixture
from roundtrip.plots import lines
from roundtrip.reproduce.fits import (
    certainty,
    fitted,
    log_density,
    machine,
    settings_name,
    told,
    tolerance,
)
from roundtrip.reproduce.methods import DEFAULT, FIGURE_METHODS, PAPER, make_method
from roundtrip.reproduce.published import SPEARMAN_AT_10
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log, Runs
from roundtrip.reproduce.simulations import MIXTURE_SD, sizes

BUDGET, PAPER_BUDGET, QUICK_BUDGET = 60.0, 300.0, 4.0
DIMENSIONS, QUICK_DIMENSIONS = tuple(range(2, 11)), (2, 10)
LAPLACE = f"{PAPER}, Laplace"


def fig_s2(request: Request) -> str:
    """Fit every method in every dimension; returns the page in Markdown."""
    request.refuse("seeds")
    runs, methods = request.runs(), request.chosen(FIGURE_METHODS)
    dimensions = QUICK_DIMENSIONS if request.quick else DIMENSIONS
    log = Log(len(dimensions) * len(methods), quiet=request.quiet)
    for dimension in reversed(dimensions):  # first 10, whose numbers the paper states
        for method in methods:
            key = _key(request, dimension, method)
            log.run(runs, key, partial(_measure, request, key), "spearman")
    curves = _curves(request, runs, methods, dimensions)
    request.write_figure(
        lines(
            curves,
            x_label="dimension",
            y_label="Spearman correlation with the true density",
            strong=DEFAULT,
        )
    )
    text = _page(request, runs, curves, dimensions)
    request.write_text("figS2.md", text)
    return text


def _key(request: Request, dimension: int, method: str) -> dict[str, Any]:
    return {
        "dimension": dimension,
        "method": method,
        "seed": 0,
        "budget": request.seconds(method, own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET),
        "settings": settings_name(_estimator(request, method, dimension)),
    }


def _estimator(request: Request, method: str, dimension: int) -> Any:
    # The authors' latent dimension in the simulations is that of the data.
    return make_method(method, seed=0, latent_dim=dimension, scale=None, quick=request.quick)


def _measure(request: Request, key: Mapping[str, Any]) -> dict[str, Any]:
    rows, test_rows = sizes(quick=request.quick)
    dimension = key["dimension"]
    data = make_independent_mixture(rows, dim=dimension, sd=MIXTURE_SD, random_state=key["seed"])
    test, train = data.X[:test_rows], data.X[test_rows:]
    truth = data.log_density(test)
    est, record = fitted(request, key, _estimator(request, key["method"], dimension), train)
    tol = tolerance(key["method"])
    scores, details = log_density(est, test, quick=request.quick, tol=tol)
    record |= {
        "spearman": float(spearmanr(scores, truth).statistic),
        "log_likelihood": float(scores.mean()),
        "truth": float(truth.mean()),
        **details,
    }
    if key["method"] == PAPER:
        laplace = est.density(test, method="laplace").log_density
        record["spearman_laplace"] = float(spearmanr(laplace, truth).statistic)
    return record


def _curves(
    request: Request, runs: Runs, methods: Sequence[str], dimensions: Sequence[int]
) -> dict[str, dict[float, float]]:
    curves: dict[str, dict[float, float]] = {}
    for method in methods:
        for dimension in dimensions:
            record = runs[_key(request, dimension, method)]
            curves.setdefault(method, {})[dimension] = record["spearman"]
            if method == PAPER:
                curves.setdefault(LAPLACE, {})[dimension] = record["spearman_laplace"]
    return curves


def _page(
    request: Request,
    runs: Runs,
    curves: Mapping[str, Mapping[float, float]],
    dimensions: Sequence[int],
) -> str:
    rows = []
    for method, values in curves.items():
        published = SPEARMAN_AT_10.get(method)
        cells = [f"{values[dimension]:.3f}" for dimension in dimensions]
        cells.append("" if published is None else f"{published:.3f}")
        rows.append([method, *cells])
    points, held_out = sizes(quick=request.quick)
    # Laplace is a curve, but not a method of its own.
    methods = [method for method in curves if method != LAPLACE]
    shown = [runs[_key(request, d, method)] for method in methods for d in dimensions]
    limits = request.limits(own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET)
    settings = (
        f"{points:,} points of the independent mixture with components of sd {MIXTURE_SD}, "
        f"{held_out:,} of them held out; seed 0; {limits}; {certainty(shown)}; {machine(shown)}."
    )
    if request.quick:
        settings += " Quick run: few points, hardly any training; it means little."
    parts = [
        "# Fig. S2: Spearman correlation with the true density, by dimension",
        settings,
        markdown_table(["method", *map(str, dimensions), "paper, at 10"], rows),
    ]
    if PAPER in curves:
        last = runs[_key(request, dimensions[-1], PAPER)]
        parts.append(f"Paper's preset at dimension {dimensions[-1]}: {told(last)}.")
    parts.append("![correlation by dimension](figS2.png)")
    return "\n\n".join(parts) + "\n"
