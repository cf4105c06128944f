"""Rows outside of the data: what they add to p(x), and rows that lie there for certain.

A model with an `outside_share` ε describes a row by a z with probability 1 - ε, and otherwise by
the tails of its noise alone: p(x) = (1 - ε) ∫ p(x | z) p(z) dz + ε p(x | outside). The second term
has a closed form. Far from all data, where G extrapolates and the integral is hardest, it is larger
than the first by many orders of magnitude, so that a rough estimate of the integral is enough.
"""

import math

import torch
from torch import Tensor

from roundtrip.density.encoder_proposal import EncoderProposal, net_log_weights
from roundtrip.density.nets import SIZES
from roundtrip.density.randomness import row_keys
from roundtrip.density.starts.bank import Bank, log_likelihoods_at_bank
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

NEGLIGIBLE = 15.0
"""Nats by which the estimated integral must be below the outside term to count for nothing. A part
of p(x) that the estimate missed would have to be e¹² times what it found to change log p(x) by
0.05."""

CERTAIN = 1e-4
"""Standard error, in nats, of rows to which the integral adds nothing: what rounding leaves."""

FAR = 25.0
"""The same for a rough estimate of the integral, which may be too low by many nats."""

BANK_POINTS = 256
"""Draws from the prior that tell, beside draws from the encoder's posterior, that a row is far."""

OUTSIDE_EVALUATIONS = 1 + SIZES[0]
"""Evaluations of G that this takes."""


def with_outside(
    model: RoundtripModel, log_integral: Tensor, std_error: Tensor, log_outside: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Add the outside term to estimates of the integral over z.

    Parameters
    ----------
    model : RoundtripModel
        The model.
    log_integral, std_error : Tensor
        Estimates of log ∫ p(x | z) p(z) dz and their standard errors, `(rows,)`.
    log_outside : Tensor
        What `RoundtripModel.log_outside` gives, `(rows,)`.

    Returns
    -------
    log_density, std_error : Tensor
        log p(x) and its standard error, `(rows,)`.
    negligible : Tensor
        Whether the integral counts for nothing, `(rows,)` bool.
    """
    if not model.outside_share:
        return log_integral, std_error, torch.zeros_like(log_integral, dtype=torch.bool)
    # Networks overflow where x is so far that only the outside term counts.
    inside = log_integral.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    inside = inside + math.log1p(-model.outside_share)
    log_density = torch.logaddexp(inside, log_outside)
    negligible = inside < log_outside - NEGLIGIBLE
    share = (inside - log_density).exp()
    return log_density, torch.where(negligible, CERTAIN, share * std_error), negligible


def with_outside_code(
    model: RoundtripModel, x: Tensor, z: Tensor, log_weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Add a code for rows outside of the data to draws of z with weights p(x, z) / q(z).

    Parameters
    ----------
    model : RoundtripModel
        The model.
    x : Tensor
        Rows, `(rows, features)`.
    z, log_weights : Tensor
        Draws, `(rows, n, latent_dim)`, and the logarithms of their weights, `(rows, n)`.

    Returns
    -------
    codes : Tensor
        The draws, followed by a code of NaN if the model has rows outside of the data, as
        `RoundtripModel.outputs_of` takes it.
    log_shares : Tensor
        Logarithms of what each code adds to p(x).
    """
    log_shares = log_weights - math.log(log_weights.shape[1])
    if not model.outside_share:
        return z, log_shares
    log_shares = log_shares.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    log_shares = log_shares + math.log1p(-model.outside_share)
    outside = torch.full_like(z[:, :1], math.nan)
    shares = [log_shares, model.log_outside(x)[:, None]]
    return torch.cat([z, outside], dim=1), torch.cat(shares, dim=1)


def error_of_average(weights: Tensor, values: Tensor, *, drawn: int) -> Tensor:
    """Return the standard error of an average over codes of which only the first are drawn.

    The share of rows outside of the data is known without draws.

    Parameters
    ----------
    weights : Tensor
        `(rows, codes)`, which sum to 1.
    values : Tensor
        `(rows, codes)` or `(rows, codes, points)`.
    drawn : int
        Number of codes that are draws.

    Returns
    -------
    Tensor
        `(rows,)` or `(rows, points)`.

    Examples
    --------
    >>> half = torch.tensor([[0.25, 0.25, 0.5]])
    >>> error_of_average(half, torch.tensor([[1.0, 1.0, 0.0]]), drawn=2)
    tensor([0.])
    """
    if values.ndim > weights.ndim:
        weights = weights[..., None]
    terms = weights * (values - (weights * values).sum(1, keepdim=True))
    terms = terms[:, :drawn]
    around = terms.square().sum(1) - terms.sum(1).square() / drawn
    return around.clamp_min(0.0).sqrt()


@torch.no_grad()
def outside_rows(
    model: RoundtripModel, x: Tensor, bank: Bank, *, seed: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """Find rows to whose density the integral over z adds nothing.

    The integral is estimated twice, by draws from the prior and by a net from the encoder's
    posterior. Both must be far below the outside term.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    x : Tensor
        Rows that the encoder does not know, `(rows, features)`.
    bank : Bank
        Bank of the model.
    seed : int
        Seed of the draws.

    Returns
    -------
    rows : Tensor
        Which rows these are, `(rows,)` bool.
    columns : dict of Tensor
        Columns of a `DensityEstimate` of all rows; those of other rows mean nothing.
    """
    log_outside = model.log_outside(x)
    by_bank = log_likelihoods_at_bank(model, x, bank, BANK_POINTS)
    by_bank = by_bank.logsumexp(dim=1) - math.log(BANK_POINTS)
    keys = row_keys(x.cpu().numpy(), named_seed(seed, "rows outside of the data"))
    by_net = net_log_weights(model, x, EncoderProposal.of(model, x), keys, 0, SIZES[0])
    by_net = by_net.logsumexp(dim=1) - math.log(SIZES[0])
    # A comparison with NaN is False, so that such rows are sampled.
    log_integral = torch.maximum(by_bank, by_net)
    log_density, std_error, _ = with_outside(
        model, log_integral, torch.zeros_like(log_integral), log_outside
    )
    far = log_integral < log_outside - FAR
    return far, {
        "log_density": log_density,
        "std_error": std_error,
        "ess": torch.full_like(log_density, OUTSIDE_EVALUATIONS),
        "pareto_k": torch.zeros_like(log_density),
        "converged": far,
    }
