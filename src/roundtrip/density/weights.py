"""Importance weights and what follows from them: shared by all sampling methods."""

import math

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.model.core import RoundtripModel

JOINED_NUMBERS = 2**22
"""Draws and points that are laid side by side at once, 32 MB of them."""


def weighted_estimate(log_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log of the mean weight, its standard error and the effective number of draws, per row.

    >>> import torch
    >>> [value.tolist() for value in weighted_estimate(torch.zeros(1, 4))]
    [[0.0], [0.0], [4.0]]
    """
    n = log_weights.shape[1]
    log_total = torch.logsumexp(log_weights, dim=1)
    # Sum of squared normalised weights: the inverse of the effective number of draws.
    concentration = torch.exp(torch.logsumexp(2 * log_weights, dim=1) - 2 * log_total)
    # Delta method: the standard error of a logarithm is the relative standard error.
    relative_variance = (n * concentration - 1).clamp_min(0) / (n - 1 if n > 1 else math.nan)
    return log_total - math.log(n), relative_variance.sqrt(), 1 / concentration


def log_likelihoods(model: RoundtripModel, x: Tensor, z: Tensor) -> Tensor:
    """log p(x | z) of `(rows, n, latent_dim)` draws, `(rows, n)`, with G in blocks of one shape."""
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
    """log p(x, z) of `(rows, n, latent_dim)` draws, `(rows, n)`."""
    return log_likelihoods(model, x, z) + model.prior.log_prob(z)


def encoded(model: RoundtripModel, x: Tensor, context: Tensor | None = None) -> Tensor:
    """H(x) as a start for z, `(rows, latent_dim)` float64, finite whatever x."""
    inputs = (x,) if context is None else (x, context)
    centres = map_blocks(model.encode, inputs, ROWS_PER_ENCODER_CALL).double()
    # Any centre gives a valid proposal; a row so far out that H overflows starts at the prior.
    return torch.nan_to_num(centres, nan=0.0, posinf=0.0, neginf=0.0)
