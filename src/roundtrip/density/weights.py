"""The estimate of eq. (5) and its standard error from importance weights, for all methods."""

import math

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.model.core import RoundtripModel

JOINED_NUMBERS = 2**22
"""Largest number of float64 values of draws and rows that are joined at once, 32 MB."""


def weighted_estimate(log_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Estimate log p(x) of each row by the mean weight, eq. (5).

    Parameters
    ----------
    log_weights : Tensor
        Values of log p(x | z) p(z) / q(z), `(rows, n)`.

    Returns
    -------
    log_density : Tensor
        Log of the mean weight, `(rows,)`.
    std_error : Tensor
        Standard error of `log_density`, `(rows,)`.
    ess : Tensor
        Effective sample size, `(rows,)`.

    Examples
    --------
    >>> import torch
    >>> [value.tolist() for value in weighted_estimate(torch.zeros(1, 4))]
    [[0.0], [0.0], [4.0]]
    """
    n = log_weights.shape[1]
    log_total = torch.logsumexp(log_weights, dim=1)
    # Sum of squared normalised weights, the inverse of the effective sample size.
    concentration = torch.exp(torch.logsumexp(2 * log_weights, dim=1) - 2 * log_total)
    # Delta method: the standard error of a logarithm is the relative standard error.
    relative_variance = (n * concentration - 1).clamp_min(0) / (n - 1 if n > 1 else math.nan)
    return log_total - math.log(n), relative_variance.sqrt(), 1 / concentration


def log_likelihoods(model: RoundtripModel, x: Tensor, z: Tensor) -> Tensor:
    """Return log p(x | z) of `(rows, n, latent_dim)` draws, `(rows, n)`, in fixed-shape blocks."""
    numbers_per_row = z.shape[1] * (model.latent_dim + x.shape[1])
    rows_at_once = max(1, JOINED_NUMBERS // max(1, numbers_per_row))
    parts = []
    for points, draws in zip(x.split(rows_at_once), z.split(rows_at_once), strict=True):
        repeated = points[:, None].expand(-1, z.shape[1], -1)
        both = (repeated.flatten(0, 1), draws.flatten(0, 1))
        values = map_blocks(model.log_likelihood, both, EVALUATIONS_PER_CALL)
        parts.append(values.view(draws.shape[:2]))
    return torch.cat(parts)


def log_joints(model: RoundtripModel, x: Tensor, z: Tensor) -> Tensor:
    """Return log p(x, z) of `(rows, n, latent_dim)` draws, `(rows, n)`."""
    return log_likelihoods(model, x, z) + model.prior.log_prob(z)


def encoded(model: RoundtripModel, x: Tensor, context: Tensor | None = None) -> Tensor:
    """Return H(x) as the centre of a proposal, `(rows, latent_dim)` float64, always finite."""
    inputs = (x,) if context is None else (x, context)
    centres = map_blocks(model.encode, inputs, ROWS_PER_ENCODER_CALL).double()
    # Any centre gives a valid proposal. If H overflows for a distant row, it is the origin.
    return torch.nan_to_num(centres, nan=0.0, posinf=0.0, neginf=0.0)
