"""Importance sampling with a Student-t proposal at H(x), eq. (5)."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.diagnostics import pareto_k, reliable_k
from roundtrip.density.proposals import student_t_draws
from roundtrip.density.randomness import row_generators
from roundtrip.density.result import DensityEstimate
from roundtrip.density.weights import encoded, log_likelihoods, weighted_estimate
from roundtrip.io.progress import tracked
from roundtrip.model.core import RoundtripModel, beside
from roundtrip.model.noise import isotropic_log_prob


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
    for log_weight in tracked(
        log_weights(model, x, n_samples=n_samples, scale=scale, df=df, seed=seed),
        "scoring",
        total=math.ceil(len(x) / _rows_per_block(n_samples)),
        enabled=verbose,
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


@torch.no_grad()
def importance_over_sigmas(
    model: RoundtripModel,
    rows: Rows,
    *,
    n_samples: int,
    scale: float,
    df: float,
    sigmas: Tensor,
    seed: int,
) -> Tensor:
    """log p(x) for every sigma of a grid, `(rows, sigmas)`, from one set of G evaluations."""
    parts = []
    for block, z, log_ratio in _draws(model, rows, n_samples, scale, df, seed):
        context = block.context[:, None].expand(-1, n_samples, -1).flatten(0, 1)
        codes = (z.flatten(0, 1), context)
        generated = map_blocks(model.generate, codes, EVALUATIONS_PER_CALL)
        residual = block.x[:, None, :] - generated.view(*z.shape[:2], -1).double()
        squared = residual.square().sum(-1)
        log_likelihood = isotropic_log_prob(squared[..., None], sigmas, rows.features)
        parts.append(torch.logsumexp(log_likelihood + log_ratio[..., None], dim=1))
    return torch.cat(parts) - math.log(n_samples)


@torch.no_grad()
def log_weights(
    model: RoundtripModel, x: Tensor, *, n_samples: int, scale: float, df: float, seed: int
) -> Iterator[Tensor]:
    """Blocks of log p(x | z) p(z) / q(z) of eq. (5), each `(rows in block, n_samples)`."""
    rows = Rows.without_context(x)
    for block, z, log_ratio in _draws(model, rows, n_samples, scale, df, seed):
        yield log_likelihoods(model, block.x, z) + log_ratio


def _draws(
    model: RoundtripModel, rows: Rows, n_samples: int, scale: float, df: float, seed: int
) -> Iterator[tuple[Rows, Tensor, Tensor]]:
    """Blocks of rows with their draws of z and log p(z) / q(z) of each draw."""
    rows = rows.to(torch.float64)
    size = _rows_per_block(n_samples)
    starts = encoded(model, rows.x, rows.context)
    for block, start in zip(rows.split(size), starts.split(size), strict=True):
        draws = [
            student_t_draws(n_samples, model.latent_dim, df, rng)
            for rng in row_generators(beside(block.x, block.context).cpu().numpy(), seed)
        ]
        standard, log_standard = (
            torch.stack(part).to(rows.device) for part in zip(*draws, strict=True)
        )
        z = start[:, None, :] + scale * standard
        log_proposal = log_standard - model.latent_dim * math.log(scale)
        yield block, z, model.prior.log_prob(z) - log_proposal


def _rows_per_block(n_samples: int) -> int:
    return max(1, EVALUATIONS_PER_CALL // n_samples)
