"""Gaussian proposals that are fitted to each row by values or gradients of log p(x, z).

In many latent dimensions the encoder's posterior, which one network gives for all rows, is too far
from that of a row for importance sampling. The gradient of log p(x, z) at draws from a Gaussian
says how to improve it: if p(z | x) were Gaussian, the gradient would be linear in z, with the
precision as slope and the mean as zero. A regression of the gradients on z therefore gives a better
Gaussian, from as few draws as there are dimensions. Its fixed point is the Gaussian q with the
smallest KL(q || p) (Salimans and Knowles, 2013). Draws are weighted by the square root of their
importance weights, which favours a Gaussian that covers p(z | x).

In few dimensions a regression of the values on squares and products of z does the same, and needs
no gradients.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.model.core import RoundtripModel

GRADIENT_EVALUATIONS = 3
"""Evaluations of G that take as long as a value with its gradient."""

MOST_ITERATIONS, UNDAMPED = 8, 2
"""Most iterations, and those that take whole steps; later ones are averaged with these."""

GOOD_EFFICIENCY = 0.5
"""Effective sample size, as a share of the draws, at which a row needs no further iteration."""

DRAWS_PER_PARAMETER = 2
RIDGE = 3.0
"""Weight, in draws, of the belief that the Gaussian is right already."""

PRECISIONS, LONGEST_STEP = (0.1, 10.0), 3.0
"""Limits of the change of a Gaussian in one iteration, in its own units."""

VALUES_RIDGE, VALUES_PRECISIONS, VALUES_STEP = 6.0, (0.25, 4.0), 2.0
"""The same for a regression of values."""

FARTHEST = 6.0
"""Standard deviations of the squared distance from the mean up to which draws are used."""

LARGEST_GRADIENT, LARGEST_FALL = 50.0, 100.0
"""Gradients, and values below the largest one, are cut off here: far tails say nothing."""


def refinement_draws(latent_dim: int) -> int:
    """Return the draws per iteration, a multiple of 32.

    Examples
    --------
    >>> [refinement_draws(dim) for dim in (2, 6, 18, 30)]
    [32, 32, 64, 64]
    """
    return 32 * math.ceil(DRAWS_PER_PARAMETER * (1 + latent_dim) / 32)


def most_refinement_evaluations(latent_dim: int) -> int:
    """Return the largest number of evaluations of G per row that a refinement takes."""
    return MOST_ITERATIONS * GRADIENT_EVALUATIONS * refinement_draws(latent_dim)


@torch.no_grad()
def refined(
    model: RoundtripModel, x: Tensor, mean: Tensor, factor: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Fit a Gaussian to p(z | x) of each row.

    Parameters
    ----------
    model : RoundtripModel
        The model.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    mean, factor : Tensor
        First Gaussians: means, `(rows, dim)`, and lower Cholesky factors, `(rows, dim, dim)`.

    Returns
    -------
    mean, factor : Tensor
        The Gaussians after the last iteration.
    evaluations : Tensor
        Evaluations of G per row, `(rows,)`.
    """
    mean, factor = mean.clone(), factor.clone()
    n = refinement_draws(model.latent_dim)
    rows = torch.arange(len(x), device=x.device)
    evaluations = torch.zeros_like(rows)
    for iteration in range(MOST_ITERATIONS):
        noise = _normal_draws(model.latent_dim)[iteration * n : (iteration + 1) * n].to(x.device)
        # A product per row here and below, which does not depend on the number of rows.
        z = mean[rows, None] + noise.expand(len(rows), -1, -1) @ factor[rows].mT
        log_joint, gradient = _with_gradients(model, x[rows], z)
        evaluations[rows] += GRADIENT_EVALUATIONS * n
        log_weights = log_joint + 0.5 * noise.square().sum(-1)
        share = 1 / (n * torch.softmax(log_weights, dim=1).square().sum(1))
        rows_going_on = ~(share >= GOOD_EFFICIENCY)
        rate = 1.0 if iteration < UNDAMPED else 1 / iteration
        slopes = gradient[rows_going_on] @ factor[rows[rows_going_on]]
        rows = rows[rows_going_on]
        if not len(rows):
            break
        step, width = _regression(noise, slopes, log_weights[rows_going_on], rate)
        mean[rows] += (factor[rows] @ step[..., None])[..., 0]
        factor[rows] = _changed(factor[rows], width)
    return mean, factor, evaluations


def _regression(
    noise: Tensor, slopes: Tensor, log_weights: Tensor, rate: float
) -> tuple[Tensor, Tensor]:
    """Return the mean and covariance of better Gaussians in units of the present ones.

    Parameters
    ----------
    noise : Tensor
        The draws in these units, `(n, dim)`.
    slopes : Tensor
        Gradients of log p(x, z) there, `(rows, n, dim)`.
    log_weights : Tensor
        Logarithms of the importance weights, `(rows, n)`.
    rate : float
        How far to go towards the Gaussian that the regression finds, from 0 to 1.

    Returns
    -------
    mean : Tensor
        `(rows, dim)`.
    covariance : Tensor
        `(rows, dim, dim)`.
    """
    n, dim = noise.shape
    slopes = slopes.clamp(-LARGEST_GRADIENT, LARGEST_GRADIENT).nan_to_num()
    inputs = torch.cat([torch.ones_like(noise[:, :1]), noise], dim=1)
    weights = n * torch.softmax(0.5 * log_weights, dim=1).nan_to_num(nan=1 / n)
    weighted = inputs.T * weights[:, None]
    ridge = torch.full_like(inputs[0], RIDGE)
    ridge[0] = 1e-6  # the mean is as free as the draws allow
    # What the present Gaussian, with slopes -noise, does not explain.
    squares = weighted @ inputs.expand(len(weights), -1, -1) + ridge.diag()
    found = torch.linalg.solve(squares, weighted @ (slopes + noise))
    identity = torch.eye(dim, dtype=noise.dtype, device=noise.device)
    precision = identity - _symmetric(found[:, 1:])
    return _gaussian_of(precision, found[:, 0], PRECISIONS, LONGEST_STEP, rate)


def _gaussian_of(
    precision: Tensor,
    linear: Tensor,
    limits: tuple[float, float],
    longest: float,
    rate: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return mean and covariance of log densities ``linear z - z precision z / 2``.

    Limits of the eigenvalues and the longest step keep a poor regression from doing harm.
    """
    values, vectors = torch.linalg.eigh(precision)
    values = (1 - rate) + rate * values.clamp(*limits)
    covariance = vectors @ (vectors / values[:, None]).mT
    mean = (covariance @ (rate * linear[..., None]))[..., 0]
    length = mean.norm(dim=1, keepdim=True)
    return mean * (longest / length.clamp_min(longest)), covariance


def refined_by_values(
    mean: Tensor, factor: Tensor, z: Tensor, log_joint: Tensor, log_weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Fit a Gaussian to p(z | x) of each row by a regression of log p(x, z) at given draws.

    Parameters
    ----------
    mean, factor : Tensor
        First Gaussians: means, `(rows, dim)`, and lower Cholesky factors, `(rows, dim, dim)`.
    z : Tensor
        Draws, `(rows, n, dim)`; more than a quadratic function of z has coefficients.
    log_joint, log_weights : Tensor
        Values of log p(x, z) and logarithms of the importance weights, `(rows, n)`.

    Returns
    -------
    mean : Tensor
        Means of the fitted Gaussians, `(rows, dim)`.
    factor : Tensor
        Their Cholesky factors, `(rows, dim, dim)`.
    """
    n, dim = z.shape[1:]
    units = torch.linalg.solve_triangular(factor, (z - mean[:, None]).mT, upper=False).mT
    squared = units.square().sum(-1)
    row, column = torch.triu_indices(dim, dim, device=z.device)
    products = units[..., row] * units[..., column]
    inputs = torch.cat([torch.ones_like(units[..., :1]), units, products], dim=-1)
    weights = n * torch.softmax(0.5 * log_weights, dim=1).nan_to_num(nan=1 / n)
    # The farthest draws, from the tails of the proposal, say nothing about the middle.
    near = squared < dim + FARTHEST * math.sqrt(2 * dim)
    weights = torch.where(near, weights, 0.0)
    weighted = inputs.mT * weights[:, None]
    # What the present Gaussian does not explain, up to a constant.
    rest = torch.where(near, log_joint + 0.5 * squared, -math.inf)
    rest = (rest - rest.amax(dim=1, keepdim=True)).clamp_min(-LARGEST_FALL).nan_to_num()
    ridge = torch.full_like(inputs[0, 0], VALUES_RIDGE)
    ridge[0] = 1e-6
    found = torch.linalg.solve(weighted @ inputs + ridge.diag(), weighted @ rest[..., None])[..., 0]
    curvature = z.new_zeros(len(z), dim, dim)
    curvature[:, row, column] = found[:, 1 + dim :]
    identity = torch.eye(dim, dtype=z.dtype, device=z.device)
    precision = identity - curvature - curvature.mT
    step, width = _gaussian_of(precision, found[:, 1 : 1 + dim], VALUES_PRECISIONS, VALUES_STEP)
    return mean + (factor @ step[..., None])[..., 0], _changed(factor, width)


def _with_gradients(model: RoundtripModel, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return log p(x, z) of `(rows, n, dim)` draws, `(rows, n)`, and its gradients."""
    rows, n = z.shape[:2]

    def of_block(row: Tensor, z: Tensor) -> Tensor:
        with torch.enable_grad():
            place = z.clone().requires_grad_()
            value = model.log_joint(x[row], place)
            (gradient,) = torch.autograd.grad(value.sum(), place)
        return torch.cat([value.detach()[:, None], gradient], dim=1)

    row = torch.arange(rows, device=x.device).repeat_interleave(n)
    both = map_blocks(of_block, (row, z.flatten(0, 1)), EVALUATIONS_PER_CALL).view(rows, n, -1)
    return both[..., 0], both[..., 1:]


@lru_cache(maxsize=8)
def _normal_draws(dim: int) -> Tensor:
    """Return evenly spread normal draws for all iterations, the same for all rows."""
    engine = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0)
    levels = engine.draw(MOST_ITERATIONS * refinement_draws(dim), dtype=torch.float64)
    return torch.special.ndtri(levels.clamp(1e-6, 1 - 1e-6))


def _changed(factor: Tensor, width: Tensor) -> Tensor:
    """Return Cholesky factors of Gaussians with covariance `width` in units of the present ones."""
    new, failed = torch.linalg.cholesky_ex(width)
    return torch.where((failed > 0)[:, None, None], factor, factor @ new)


def _symmetric(matrices: Tensor) -> Tensor:
    return 0.5 * (matrices + matrices.mT)
