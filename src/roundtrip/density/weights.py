"""The estimate of eq. (5) and its standard error from importance weights, for all methods."""

import math

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.model.core import RoundtripModel


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
    return _in_blocks(model, x, z, with_prior=False)


def log_joints(model: RoundtripModel, x: Tensor, z: Tensor) -> Tensor:
    """Return log p(x, z) of `(rows, n, latent_dim)` draws, `(rows, n)`, in fixed-shape blocks."""
    return _in_blocks(model, x, z, with_prior=True)


def _in_blocks(model: RoundtripModel, x: Tensor, z: Tensor, *, with_prior: bool) -> Tensor:
    rows, n = z.shape[:2]
    terms = model.noise.row_terms(x)
    row = torch.arange(rows, device=x.device).repeat_interleave(n)

    def of_block(z: Tensor, row: Tensor) -> Tensor:
        of_rows = tuple(term[row] for term in terms)
        values = model.noise.log_prob_of_terms(model.decode(z), of_rows).sum(-1)
        # In the block, because all draws at once would not fit into the cache.
        return values + model.prior.log_prob(z) if with_prior else values

    return map_blocks(of_block, (z.flatten(0, 1), row), EVALUATIONS_PER_CALL).view(rows, n)


def encoded(model: RoundtripModel, x: Tensor, context: Tensor | None = None) -> Tensor:
    """Return H(x) as the centre of a proposal, `(rows, latent_dim)` float64, always finite."""
    inputs = (x,) if context is None else (x, context)
    centres = map_blocks(model.encode, inputs, ROWS_PER_ENCODER_CALL).double()
    # Any centre gives a valid proposal. If H overflows for a distant row, it is the origin.
    return torch.nan_to_num(centres, nan=0.0, posinf=0.0, neginf=0.0)


def encoded_posterior(model: RoundtripModel, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and Cholesky factor of q(z | x), `(rows, dim)` and `(rows, dim, dim)` float64."""
    dim = model.latent_dim

    def flat(block: Tensor) -> Tensor:
        mean, factor = model.posterior(block)
        return torch.cat([mean, factor.flatten(1)], dim=1)

    both = map_blocks(flat, x, ROWS_PER_ENCODER_CALL).double()
    mean, factor = both.tensor_split([dim], dim=1)
    return mean, factor.unflatten(1, (dim, dim))
