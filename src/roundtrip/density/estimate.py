"""`estimate`: the one door to every density method."""

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.adaptive import DEFAULT_EVALUATIONS, adaptive
from roundtrip.density.importance import importance
from roundtrip.density.laplace import laplace
from roundtrip.density.proposals import LARGEST_DF, SMALLEST_DF
from roundtrip.density.randomness import seed_of
from roundtrip.density.result import DensityEstimate, DensityWarning
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import LARGEST_SIGMA, SMALLEST_SIGMA, ConstantGaussian
from roundtrip.parameters import check_choice, check_integer, check_number

METHODS = ("adaptive", "importance", "laplace")


def estimate(
    model: RoundtripModel,
    x: Any,
    *,
    context: Any = None,
    method: str = "adaptive",
    tol: float = 0.05,
    max_evaluations: int = DEFAULT_EVALUATIONS,
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
    context : of each row, `(rows, context_dim)`, for a model that has one.
    method : "adaptive", importance sampling to a tolerance; "importance", eq. (5), with the paper's
        proposal; or "laplace", eq. (12).
    tol : standard error of each log density, in nats, at which sampling stops (adaptive).
    max_evaluations : evaluations of G a row after which it stops in any case (adaptive).
    n_samples : draws of z a row (importance). The cost is one evaluation of G each.
    scale, df : width and degrees of freedom of the Student-t proposal at H(x) (importance).
    sigma : another width of isotropic noise than the model's own.
    random_state : seed. Each row's draws follow from it and from the row's values, so that a row's
        value does not depend on the other rows; None: other draws at every call.
    verbose : show a progress bar on stderr.

    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), 1, sigma=0.5)
    >>> estimate(model, [[0.0], [1.0]], method="laplace").log_density.shape
    (2,)
    """
    if not isinstance(model, RoundtripModel):
        raise TypeError(
            f"model must be a RoundtripModel, got {type(model).__name__}; a fitted estimator has "
            "density(X) of its own"
        )
    check_choice("method", method, METHODS)
    tol = check_number("tol", tol, above=0)
    max_evaluations = check_integer("max_evaluations", max_evaluations, minimum=1)
    n_samples = check_integer("n_samples", n_samples, minimum=1)
    scale = check_number("scale", scale, above=0)
    df = check_number("df", df, above=SMALLEST_DF, below=LARGEST_DF)
    if sigma is not None:
        sigma = check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
        if not isinstance(model.noise, ConstantGaussian):
            raise ValueError(
                "sigma is for Gaussian noise of constant width; this model has another"
            )
        model = model.with_sigma(sigma)
    if method == "laplace" and not isinstance(model.noise, ConstantGaussian):
        raise ValueError(
            "method='laplace' needs Gaussian noise of constant width (isotropic or diagonal); use "
            "method='adaptive'"
        )
    if method == "laplace" and model.prior is not None:
        raise ValueError(
            "method='laplace' is for p(z) = N(0, I), but this model has learnt its p(z); use "
            "method='adaptive', or fit with prior='normal'"
        )
    if model.has_posterior:
        model = model.with_precise_encoder()
    points = _as_points(x).to(model.device)
    seed = _seed(random_state)

    def of_points(model: RoundtripModel, points: Tensor, seed: int) -> DensityEstimate:
        _check_networks(model, points[:1])
        if method == "laplace":
            return laplace(model, points)
        if method == "importance":
            return importance(
                model,
                points,
                n_samples=n_samples,
                scale=scale,
                df=df,
                seed=seed,
                verbose=verbose,
            )
        return adaptive(
            model, points, tol=tol, max_evaluations=max_evaluations, seed=seed, verbose=verbose
        )

    was_training = model.training
    model.eval()
    try:
        if model.context_dim:
            result = _given_context(of_points, model, points, context, seed)
        else:
            result = of_points(model, points, seed)
    finally:
        model.train(was_training)
    if method == "adaptive":
        _warn_of_failures(result, tol, max_evaluations)
    return result


def _given_context(
    of_points: Callable[[RoundtripModel, Tensor, int], DensityEstimate],
    model: RoundtripModel,
    points: Tensor,
    context: Any,
    seed: int,
) -> DensityEstimate:
    """The rows of each context by the model for that context, put together in their order.

    A row has other draws under another context, so that its errors are independent.
    """
    contexts = _as_points(context).to(model.device)
    if contexts.shape != (len(points), model.context_dim):
        raise ValueError(
            f"context must have shape {(len(points), model.context_dim)}, got "
            f"{tuple(contexts.shape)}"
        )
    distinct, group = torch.unique(contexts, dim=0, return_inverse=True)
    order = torch.argsort(group, stable=True)
    parts = [
        of_points(model.given(each), points[group == number], seed_of(each.cpu().numpy(), seed))
        for number, each in enumerate(distinct)
    ]
    place = np.argsort(order.cpu().numpy())
    columns: dict[str, Any] = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])[place]
        for field in fields(DensityEstimate)
        if field.name not in ("method", "index")
    }
    return DensityEstimate(**columns, method=parts[0].method)


def _warn_of_failures(result: DensityEstimate, tol: float, max_evaluations: int) -> None:
    failed = ~result.converged
    if not failed.any():
        return
    wide = int((result.std_error > tol).sum())
    heavy = int((failed & (result.pareto_k > 0.7)).sum())
    warnings.warn(
        f"{int(failed.sum())} of {len(failed)} rows did not converge within {max_evaluations} "
        f"evaluations of G: {wide} have a standard error above {tol:g}, {heavy} have weights whose "
        "tail is too heavy to trust any error bar (pareto_k above 0.7). They are marked in "
        "`converged`; more evaluations (max_evaluations) may help, and for those with a wide error "
        "bar only, a larger tol.",
        DensityWarning,
        stacklevel=3,
    )


def _seed(random_state: int | None) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return check_integer("random_state", random_state, minimum=0) % 2**64


@torch.no_grad()
def _check_networks(model: RoundtripModel, point: Tensor) -> None:
    """Refuse networks that do not fit the data, with both numbers, before any work."""
    latent_dim, features = model.latent_dim, point.shape[1]
    try:
        generated = model.generate(torch.zeros(1, latent_dim, device=point.device)).shape
        encoded = model.encode(point).shape
    except RuntimeError as error:
        raise ValueError(
            f"the networks do not take a latent vector of {latent_dim} numbers and rows of "
            f"{features} features: {error}"
        ) from error
    if generated != (1, features):
        raise ValueError(
            f"the generator makes rows of shape {tuple(generated[1:])}, x has {features} columns"
        )
    if encoded != (1, latent_dim):
        raise ValueError(
            f"the encoder makes codes of shape {tuple(encoded[1:])}, latent_dim is {latent_dim}"
        )


def _as_points(x: Any) -> Tensor:
    if isinstance(x, Tensor):
        points = x.detach()
    else:
        try:
            points = torch.tensor(np.ascontiguousarray(x, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise ValueError(f"x must be a table of numbers: {error}") from error
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"x must have shape (rows, features), got {tuple(points.shape)}")
    points = points.double()
    if not torch.isfinite(points).all():
        raise ValueError("x contains NaN or infinite values")
    return points
