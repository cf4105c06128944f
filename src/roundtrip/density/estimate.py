"""`estimate`: log densities of a model by any method, eq. (5), eq. (12) or adaptive."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.density.adaptive import DEFAULT_EVALUATIONS, adaptive
from roundtrip.density.importance import importance
from roundtrip.density.laplace import laplace
from roundtrip.density.mean import LOOSEST_ROW_TOL, MeanDensity, mean_log_density, mean_of_rows
from roundtrip.density.method import Method
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.randomness import seed_of
from roundtrip.density.result import DensityEstimate
from roundtrip.density.unconverged import warn_of_failures, warn_of_mean
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import LARGEST_SIGMA, SMALLEST_SIGMA
from roundtrip.parameters import check_integer, check_number

MISSING = -1.2345678987654321e300
"""Stands for a missing cell where rows are compared."""


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
    """Estimate log densities of rows under a model.

    Parameters
    ----------
    model : RoundtripModel
        The networks, prior and noise.
    x : array-like or Tensor
        Rows, `(rows, features)`.
    context : array-like or Tensor, default=None
        Context of each row, `(rows, context_dim)`, for a conditional model.
    method : {"adaptive", "importance", "laplace"}, default="adaptive"
        "adaptive" samples until the standard error is within `tol`, "importance" is eq. (5) with
        the paper's proposal, "laplace" is the closed form of eq. (12).
    tol : float, default=0.05
        Standard error of each log density, in nats, at which sampling stops (adaptive).
    max_evaluations : int, default=20000
        Largest number of evaluations of G per row (adaptive).
    n_samples : int, default=40000
        Draws of z per row, each one evaluation of G (importance).
    scale, df : float, default=0.5 and 1.0
        Scale and degrees of freedom of the Student-t proposal at H(x) (importance).
    sigma : float, default=None
        Width of isotropic noise to use instead of the model's own.
    random_state : int or None, default=0
        Seed. The draws of a row depend on the seed and the values of the row, so that its density
        does not depend on other rows. With None draws differ between calls.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Returns
    -------
    DensityEstimate
        Log densities with error bars and diagnostics, one entry per row.

    Examples
    --------
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
    how = Method(method, tol, max_evaluations, n_samples, scale, df)
    if sigma is not None:
        model = with_sigma(model, sigma)
    points = _as_points("x", x, missing=model.inputs is not None)
    rows = Rows.without_context(points)
    if context is not None and not model.context_dim:
        raise ValueError("context was given, but the model has none")
    if model.context_dim:
        if context is None:
            raise ValueError(f"the model needs a context of shape (rows, {model.context_dim})")
        contexts = _as_points("context", context)
        if contexts.shape != (len(points), model.context_dim):
            raise ValueError(
                f"context must have shape {(len(points), model.context_dim)}, got "
                f"{tuple(contexts.shape)}"
            )
        rows = Rows(points, contexts)
    was_training = model.training
    model.eval()
    try:
        prepared = PreparedModel.precise(model)
        rows = rows.to(model.device)
        _check_networks(prepared.model, rows[:1])
        return evaluate(prepared, rows, how, seed=_seed(random_state), verbose=verbose)
    finally:
        model.train(was_training)


def with_sigma(model: RoundtripModel, sigma: float) -> RoundtripModel:
    """Return the model with isotropic noise of another width.

    Parameters
    ----------
    model : RoundtripModel
        Model with Gaussian noise of constant width.
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    RoundtripModel
        Model with the same networks and prior.
    """
    sigma = check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
    if model.noise.sigma is None:
        raise ValueError("sigma is for Gaussian noise of constant width; this model has another")
    return model.with_sigma(sigma)


@torch.no_grad()
def evaluate(
    prepared: PreparedModel,
    rows: Rows,
    method: Method,
    *,
    seed: int,
    verbose: bool = False,
    warn: bool = True,
) -> DensityEstimate:
    """Estimate log densities of rows that are already checked.

    Parameters
    ----------
    prepared : PreparedModel
        Model in evaluation mode with its banks.
    rows : Rows
        Rows in scaled units, on the device of the model.
    method : Method
        Method and its settings.
    seed : int
        Seed of the draws.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.
    warn : bool, default=True
        Whether to issue a `DensityWarning` about rows that have not converged.

    Returns
    -------
    DensityEstimate
        Log densities in scaled units, one entry per row.
    """
    if method.name == "laplace":
        _check_laplace(prepared.model)
    if prepared.model.context_dim:
        result = _given_context(prepared, rows, method, seed, verbose)
    else:
        result = _evaluate(prepared, rows.x, method, seed, verbose)
    if warn and method.name == "adaptive":
        warn_of_failures(result, method)
    return result


@torch.no_grad()
def evaluate_mean(
    prepared: PreparedModel, rows: Rows, *, tol: float, seed: int, verbose: bool = False
) -> MeanDensity:
    """Estimate the mean log density of rows that are already checked.

    Parameters
    ----------
    prepared : PreparedModel
        Model in evaluation mode with its banks.
    rows : Rows
        Rows in scaled units, on the device of the model.
    tol : float
        Standard error of the mean, in nats.
    seed : int
        Seed of the draws.
    verbose : bool, default=False
        Whether to show a progress bar on stderr.

    Returns
    -------
    MeanDensity
        Mean log density in scaled units.
    """
    values = torch.cat([rows.x, rows.context.to(rows.x.dtype)], dim=1)
    # NaN differs from NaN, but rows with the same missing cells may be the same.
    both, counts = torch.unique(values.nan_to_num(nan=MISSING), dim=0, return_counts=True)
    both = both.masked_fill(both == MISSING, torch.nan)
    distinct = Rows(both[:, : rows.features], both[:, rows.features :])
    if prepared.model.context_dim:
        how = Method(tol=min(LOOSEST_ROW_TOL, tol * math.sqrt(len(distinct))))
        each = _given_context(prepared, distinct, how, seed, verbose)
        result = mean_of_rows(each, counts.cpu().numpy(), tol)
    else:
        result = mean_log_density(prepared, distinct.x, counts, tol=tol, seed=seed, verbose=verbose)
    if not result.converged:
        warn_of_mean(result, tol)
    return result


def _evaluate(
    prepared: PreparedModel, x: Tensor, method: Method, seed: int, verbose: bool
) -> DensityEstimate:
    if method.name != "adaptive" and x.isnan().any():
        raise ValueError(f"method={method.name!r} takes complete rows; use method='adaptive'")
    if method.name == "laplace":
        return laplace(prepared.model, x)
    if method.name == "importance":
        return importance(
            prepared.model,
            x,
            n_samples=method.n_samples,
            scale=method.scale,
            df=method.df,
            seed=seed,
            verbose=verbose,
        )
    return adaptive(
        prepared,
        x,
        tol=method.tol,
        max_evaluations=method.max_evaluations,
        seed=seed,
        verbose=verbose,
    )


def _check_laplace(model: RoundtripModel) -> None:
    if model.noise.sigma is None:
        raise ValueError(
            "method='laplace' needs Gaussian noise of constant width (isotropic or diagonal); use "
            "method='adaptive'"
        )
    if not model.prior.is_standard_normal:
        raise ValueError(
            "method='laplace' is for p(z) = N(0, I), but this model has another p(z); use "
            "method='adaptive', or fit with prior='normal'"
        )


def _given_context(
    prepared: PreparedModel, rows: Rows, method: Method, seed: int, verbose: bool
) -> DensityEstimate:
    """Estimate the rows of each context by the model given that context.

    Draws of a row differ between contexts, so that errors are independent.
    """
    distinct, group = torch.unique(rows.context, dim=0, return_inverse=True)
    order = torch.argsort(group, stable=True)
    parts = [
        _evaluate(
            prepared.given(each),
            rows.x[group == number],
            method,
            seed_of(each.cpu().numpy(), seed),
            verbose,
        )
        for number, each in enumerate(distinct)
    ]
    place = np.argsort(order.cpu().numpy())
    return DensityEstimate.joined(parts).taken(place)


def _seed(random_state: int | None) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return check_integer("random_state", random_state, minimum=0) % 2**64


@torch.no_grad()
def _check_networks(model: RoundtripModel, row: Rows) -> None:
    """Raise `ValueError` if the shapes of networks and data do not match."""
    latent_dim, features = model.latent_dim, row.features
    try:
        generated = model.generate(torch.zeros(1, latent_dim, device=row.device), row.context).shape
        encoded = model.encode(row.x, row.context).shape
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


def _as_points(name: str, x: Any, *, missing: bool = False) -> Tensor:
    if isinstance(x, Tensor):
        points = x.detach()
    else:
        try:
            points = torch.tensor(np.ascontiguousarray(x, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be a table of numbers: {error}") from error
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"{name} must have shape (rows, features), got {tuple(points.shape)}")
    points = points.double()
    if not (torch.isfinite(points) | (points.isnan() & missing)).all():
        raise ValueError(f"{name} contains NaN or infinite values")
    return points
