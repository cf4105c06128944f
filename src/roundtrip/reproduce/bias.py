"""The bias of the published weights on linear models, whose density is known exactly."""

import math
import time
from functools import partial
from typing import Any

import numpy as np
import torch

from roundtrip.density import estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.plots import lines
from roundtrip.reproduce.published_estimator import biased_log_density
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log

LATENT_DIMS, QUICK_LATENT_DIMS = (1, 2, 3, 5, 8, 12, 20), (1, 2, 5)
FEATURES, SIGMA, SCALE = 20, 0.5, 0.5
ROWS, DRAWS, QUICK_DRAWS = 50, 40_000, 4_000


def bias(request: Request) -> str:
    """Compare the estimators on linear models by latent dimension; returns the page in Markdown."""
    request.refuse("methods", "seeds", "budget", "paper_budget")
    runs = request.runs()
    draws = QUICK_DRAWS if request.quick else DRAWS
    latent_dims = QUICK_LATENT_DIMS if request.quick else LATENT_DIMS
    log = Log(len(latent_dims), quiet=request.quiet)
    records = []
    for latent_dim in latent_dims:
        key = {"latent_dim": latent_dim, "seed": latent_dim, "draws": draws}
        records.append(log.run(runs, key, partial(_measure, latent_dim, draws), "published_error"))
    curves: dict[str, dict[float, float]] = {
        "published weights": {r["latent_dim"]: r["published_error"] for r in records},
        "correct weights": {r["latent_dim"]: r["correct_error"] for r in records},
        "adaptive": {r["latent_dim"]: r["adaptive_error"] for r in records},
    }
    request.write_figure(
        lines(curves, x_label="latent dimension", y_label="mean error of the log density, nats")
    )
    rows = [
        [
            str(r["latent_dim"]),
            *(
                f"{r[f'{name}_error']:+.3f} ± {r[f'{name}_standard_error']:.3f}"
                for name in ("published", "correct", "adaptive")
            ),
            f"{narrow_limit(r['latent_dim']):+.2f}",
        ]
        for r in records
    ]
    header = [
        "m",
        "published weights",
        "correct weights",
        "adaptive",
        "limit of a narrow posterior",
    ]
    text = "\n\n".join(
        [
            "# The bias of the published weights",
            f"Linear G with {FEATURES} features and sigma {SIGMA}, {ROWS} points, {draws:,} draws "
            f"each from a Student t of width {SCALE} with one degree of freedom around the mean of "
            "the posterior. Mean error of the log density in nats, ± its standard error over "
            "points.",
            markdown_table(header, rows),
            "![mean error by latent dimension](bias.png)",
        ]
    )
    request.write_text("bias.md", text + "\n")
    return text + "\n"


def narrow_limit(latent_dim: int) -> float:
    """Bias of the published weights when p(x | z) is far narrower than the proposal, in nats.

    The bias then depends only on the ratio of the two densities at their centre.

    >>> narrow_limit(1), round(narrow_limit(2), 2)
    (0.0, 0.45)
    """
    return math.lgamma((latent_dim + 1) / 2) + 0.5 * (latent_dim - 1) * math.log(math.pi)


@torch.no_grad()
def _measure(latent_dim: int, draws: int) -> dict[str, Any]:
    start = time.perf_counter()
    rng = torch.Generator().manual_seed(latent_dim)
    weight = torch.randn(FEATURES, latent_dim, generator=rng, dtype=torch.float64)
    weight /= math.sqrt(FEATURES)
    # H gives the mean of the posterior, the best centre of a proposal.
    precision = torch.eye(latent_dim, dtype=torch.float64) + weight.T @ weight / SIGMA**2
    to_latent = torch.linalg.solve(precision, weight.T) / SIGMA**2
    model = RoundtripModel(_linear(weight), _linear(to_latent), latent_dim, sigma=SIGMA)
    z = torch.randn(ROWS, latent_dim, generator=rng, dtype=torch.float64)
    noise = torch.randn(ROWS, FEATURES, generator=rng, dtype=torch.float64)
    x = z @ weight.T + SIGMA * noise
    covariance = weight @ weight.T + SIGMA**2 * torch.eye(FEATURES, dtype=torch.float64)
    exact = torch.distributions.MultivariateNormal(torch.zeros(FEATURES).double(), covariance)
    truth = exact.log_prob(x).numpy()
    estimates = {
        "published": biased_log_density(model, x, n_samples=draws, scale=SCALE),
        "correct": estimate(
            model, x, method="importance", n_samples=draws, scale=SCALE
        ).log_density,
        "adaptive": estimate(model, x).log_density,
    }
    record: dict[str, Any] = {}
    for name, values in estimates.items():
        error = values - truth
        record[f"{name}_error"] = float(error.mean())
        record[f"{name}_standard_error"] = float(error.std(ddof=1) / np.sqrt(len(error)))
    return record | {"seconds": time.perf_counter() - start}


def _linear(weight: torch.Tensor) -> torch.nn.Linear:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=torch.float64)
    layer.weight.copy_(weight)
    return layer
