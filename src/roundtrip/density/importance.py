"""Importance sampling with a Student-t proposal at H(x), eq. (5)."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from roundtrip.density.blocks import (
    EVALUATIONS_PER_CALL,
    ROWS_PER_ENCODER_CALL,
    map_blocks,
)
from roundtrip.density.diagnostics import pareto_k, reliable_k
from roundtrip.density.proposals import student_t_draws
from roundtrip.density.randomness import row_generators
from roundtrip.density.result import DensityEstimate
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import isotropic_log_prob

JOINED_NUMBERS = 2**22
"""Draws and points that are laid side by side at once, 32 MB of them."""


def importance(
    model: RoundtripModel,
    x: Tensor,
    *,
    n_samples: int,
    scale: float,
    df: float,
    seed: int,
    verbose: bool = False,
) -> DensityEstimate:
    """Estimate log p(x) for `(rows, features)` points with `n_samples` draws a row."""
    parts = []
    for log_weight in track(
        log_weights(model, x, n_samples=n_samples, scale=scale, df=df, seed=seed),
        "scoring",
        total=math.ceil(len(x) / _rows_per_block(n_samples)),
        console=Console(stderr=True),
        disable=not verbose,
    ):
        parts.append(torch.stack([*weighted_estimate(log_weight), pareto_k(log_weight)]))
    log_density, std_error, ess, k = torch.cat(parts, dim=1).cpu().numpy()
    return DensityEstimate(
        log_density=log_density,
        std_error=std_error,
        ess=ess,
        n_evaluations=np.full(len(x), n_samples),
        pareto_k=k,
        converged=k <= reliable_k(n_samples),
        method="importance",
    )


def weighted_estimate(log_weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log of the mean weight, its standard error and the effective number of draws, by row.

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


@torch.no_grad()
def importance_over_sigmas(
    model: RoundtripModel,
    x: Tensor,
    *,
    n_samples: int,
    scale: float,
    df: float,
    sigmas: Tensor,
    seed: int,
) -> Tensor:
    """log p(x) for every sigma of a grid, `(rows, sigmas)`, from one set of G evaluations.

    Rows of x may have a context beside them.
    """
    parts = []
    for rows, z, log_ratio in _draws(model, x, n_samples, scale, df, seed):
        points, context = model.split(rows)
        codes = torch.cat([z, context[:, None].expand(-1, z.shape[1], -1)], dim=-1)
        generated = map_blocks(model.generate, codes.flatten(0, 1), EVALUATIONS_PER_CALL)
        residual = points[:, None, :] - generated.view(*z.shape[:2], -1).double()
        squared = residual.square().sum(-1)
        log_likelihood = isotropic_log_prob(squared[..., None], sigmas, points.shape[1])
        parts.append(torch.logsumexp(log_likelihood + log_ratio[..., None], dim=1))
    return torch.cat(parts) - math.log(n_samples)


@torch.no_grad()
def log_weights(
    model: RoundtripModel, x: Tensor, *, n_samples: int, scale: float, df: float, seed: int
) -> Iterator[Tensor]:
    """Blocks of log p(x | z) p(z) / q(z) of eq. (5), each `(rows in block, n_samples)`."""
    for points, z, log_ratio in _draws(model, x, n_samples, scale, df, seed):
        yield log_likelihoods(model, points, z) + log_ratio


def log_likelihoods(model: RoundtripModel, x: Tensor, z: Tensor) -> Tensor:
    """log p(x | z) of `(rows, n, latent_dim)` draws, `(rows, n)`, with G in blocks of one shape."""
    features = x.shape[1]

    def of_block(block: Tensor) -> Tensor:
        latent, points = block.split([model.latent_dim, features], dim=1)
        return model.log_likelihood(points, latent)

    numbers_per_row = z.shape[1] * (model.latent_dim + features)
    rows_at_once = max(1, JOINED_NUMBERS // max(1, numbers_per_row))
    parts = []
    for points, draws in zip(x.split(rows_at_once), z.split(rows_at_once), strict=True):
        joined = torch.cat([draws, points[:, None].expand(-1, z.shape[1], -1)], dim=-1)
        values = map_blocks(of_block, joined.flatten(0, 1), EVALUATIONS_PER_CALL)
        parts.append(values.view(draws.shape[:2]))
    return torch.cat(parts)


def encoded(model: RoundtripModel, x: Tensor) -> Tensor:
    """H(x) as a start for z, `(rows, latent_dim)` float64, finite whatever x."""
    centres = map_blocks(model.encode, x, ROWS_PER_ENCODER_CALL).double()
    # Any centre gives a valid proposal; a row so far out that H overflows starts at the prior.
    return torch.nan_to_num(centres, nan=0.0, posinf=0.0, neginf=0.0)


def _draws(
    model: RoundtripModel, x: Tensor, n_samples: int, scale: float, df: float, seed: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Blocks of rows of x with their draws of z and log p(z) / q(z) of each draw."""
    features = x.shape[1]
    joined = torch.cat([x.double(), encoded(model, x)], dim=1)
    for block in joined.split(_rows_per_block(n_samples)):
        points, starts = block.split([features, model.latent_dim], dim=1)
        draws = [
            student_t_draws(n_samples, model.latent_dim, df, rng)
            for rng in row_generators(points.cpu().numpy(), seed)
        ]
        standard, log_standard = (
            torch.stack(part).to(x.device) for part in zip(*draws, strict=True)
        )
        z = starts[:, None, :] + scale * standard
        log_proposal = log_standard - model.latent_dim * math.log(scale)
        yield points, z, model.log_prior(z) - log_proposal


def _rows_per_block(n_samples: int) -> int:
    return max(1, EVALUATIONS_PER_CALL // n_samples)
