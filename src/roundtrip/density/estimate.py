"""`estimate`: the one door to every density method."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.importance import importance
from roundtrip.density.laplace import laplace
from roundtrip.density.result import DensityEstimate
from roundtrip.model import RoundtripModel
from roundtrip.parameters import check_choice, check_integer, check_number

METHODS = ("importance", "laplace")


def estimate(
    model: RoundtripModel,
    x: Any,
    *,
    method: str = "importance",
    n_samples: int = 40_000,
    scale: float = 0.5,
    df: float = 1.0,
    sigma: float | None = None,
    random_state: int | None = 0,
    verbose: bool = False,
) -> DensityEstimate:
    """Log densities of the rows of `x` under `model`.

    Parameters
    ----------
    model : the networks, prior and noise.
    x : array or tensor, `(rows, features)`.
    method : "importance", eq. (5), or "laplace", eq. (12).
    n_samples : draws of z a row (importance). The cost is one evaluation of G each.
    scale, df : width and degrees of freedom of the Student-t proposal at H(x) (importance).
    sigma : observation noise; the model's own when None.
    random_state : seed. Each row's draws follow from it and from the row's values, so that a row's
        value does not depend on the other rows; None: other draws at every call.
    verbose : show a progress bar on stderr.

    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), 1, sigma=0.5)
    >>> estimate(model, [[0.0], [1.0]], method="laplace").log_density.shape
    (2,)
    """
    check_choice("method", method, METHODS)
    n_samples = check_integer("n_samples", n_samples, minimum=1)
    scale = check_number("scale", scale, above=0)
    df = check_number("df", df, above=0)
    sigma = check_number("sigma", model.sigma.item() if sigma is None else sigma, above=0)
    points = _as_points(x).to(model.device)
    was_training = model.training
    model.eval()
    try:
        if method == "laplace":
            return laplace(model, points, sigma=sigma)
        return importance(
            model,
            points,
            n_samples=n_samples,
            scale=scale,
            df=df,
            sigma=sigma,
            seed=_seed(random_state),
            verbose=verbose,
        )
    finally:
        model.train(was_training)


def _seed(random_state: int | None) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return check_integer("random_state", random_state, minimum=0)


def _as_points(x: Any) -> Tensor:
    points = x.detach() if isinstance(x, Tensor) else torch.tensor(np.ascontiguousarray(x))
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"x must have shape (rows, features), got {tuple(points.shape)}")
    points = points.double()
    if not torch.isfinite(points).all():
        raise ValueError("x contains NaN or infinite values")
    return points
