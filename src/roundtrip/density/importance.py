"""The paper's importance sampling, eq. (5), with a Student-t proposal at H(x)."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.diagnostics import pareto_k, reliable_k
from roundtrip.density.outside import with_outside
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
    """Estimate log p(x) of `(rows, features)` points by eq. (5), with `n_samples` draws per row.

    `scale` and `df` are those of the Student-t proposal at H(x).
    """
    parts, log_outside = [], model.log_outside(x)
    for log_weight in tracked(
        log_weights(model, x, n_samples=n_samples, scale=scale, df=df, seed=seed),
        "scoring",
        total=math.ceil(len(x) / _rows_per_block(n_samples)),
        enabled=verbose,
    ):
        parts.append(torch.stack([*weighted_estimate(log_weight), pareto_k(log_weight)]))
    log_integral, error, *diagnostics = torch.cat(parts, dim=1)
    log_density, std_error, negligible = with_outside(model, log_integral, error, log_outside)
    log_density, std_error, ess, k, negligible = (
        each.cpu().numpy() for each in (log_density, std_error, *diagnostics, negligible)
    )
    return DensityEstimate(
        log_density=log_density,
        std_error=std_error,
        ess=ess,
        n_evaluations=np.full(len(x), n_samples),
        pareto_k=k,
        converged=(k <= reliable_k(n_samples)) | negligible,
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
    """Estimate log p(x) by eq. (5) for every sigma of a grid.

    All sigmas share the draws and the evaluations of G.

    Parameters
    ----------
    model : RoundtripModel
        Model with isotropic noise.
    rows : Rows
        Rows and their context.
    n_samples : int
        Number N of draws per row.
    scale, df : float
        Scale and degrees of freedom of the Student-t proposal.
    sigmas : Tensor
        The grid.
    seed : int
        Seed of the draws.

    Returns
    -------
    Tensor
        Log densities, `(rows, sigmas)`.
    """
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
    """Yield blocks of log p(x | z) p(z) / q(z), eq. (5), each `(rows in block, n_samples)`."""
    rows = Rows.without_context(x)
    for block, z, log_ratio in _draws(model, rows, n_samples, scale, df, seed):
        yield log_likelihoods(model, block.x, z) + log_ratio


def _draws(
    model: RoundtripModel, rows: Rows, n_samples: int, scale: float, df: float, seed: int
) -> Iterator[tuple[Rows, Tensor, Tensor]]:
    """Yield blocks of rows with draws of z from q and log w(z) = log p(z) / q(z), eq. (5)."""
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
