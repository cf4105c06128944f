"""The first proposal of each row: a mixture around the likely places of its z."""

from dataclasses import dataclass

import torch
from torch import Tensor

from roundtrip.density.mixture import StudentMixture
from roundtrip.density.starts.bank import Bank, climbs, unusual_rows
from roundtrip.density.starts.climbing import climbed_components, most_climb_evaluations
from roundtrip.density.starts.encoder import ENCODED_EVALUATIONS, encoded_components
from roundtrip.model.core import RoundtripModel

FARTHEST_START = 1e3
"""No latent vector is farther out: the prior's density there is zero in float64."""

PRIOR_SHARE = 0.08


@dataclass(frozen=True)
class FirstProposal:
    """Where sampling starts.

    Attributes
    ----------
    mixture : StudentMixture
        One per row.
    evaluations : Tensor
        `(rows,)` evaluations of G it took.
    unusual : Tensor
        `(rows,)` of bool, rows for which the encoder is not relied on.
    """

    mixture: StudentMixture
    evaluations: Tensor
    unusual: Tensor


def most_start_evaluations(model: RoundtripModel) -> int:
    """Evaluations of G that `first_proposal` spends on a row at most."""
    return most_climb_evaluations(model.latent_dim) if climbs(model) else ENCODED_EVALUATIONS


def first_proposal(model: RoundtripModel, x: Tensor, bank: Bank) -> FirstProposal:
    """A mixture for each row of x around the likely places of its z.

    An encoder that was trained to give the posterior of z is asked, and the bank for rows that the
    encoder does not seem to know; otherwise the maxima of p(x, z) are searched for.
    """
    rows, dim = len(x), model.latent_dim
    unusual = unusual_rows(model, x, bank)
    if climbs(model):
        components, weights, evaluations = climbed_components(model, x, bank)
    else:
        components, weights = encoded_components(model, x, bank, unusual)
        evaluations = torch.full((rows,), ENCODED_EVALUATIONS, device=x.device)
    prior_mean, prior_factor = (part.to(x.device) for part in model.prior.moments())
    components.append((prior_mean.expand(rows, dim), prior_factor.expand(rows, dim, dim)))
    means, factors = (torch.stack(part, dim=1) for part in zip(*components, strict=True))
    # Rows so far away that a linear G would lead out of the numbers get the prior instead.
    failed = ~((means.abs() < FARTHEST_START).all(-1) & factors.isfinite().flatten(2).all(-1))
    means = torch.where(failed[..., None], prior_mean, means)
    factors = torch.where(failed[..., None, None], prior_factor, factors)
    weights = (1 - PRIOR_SHARE) * weights
    weights = torch.cat([weights, torch.full_like(weights[:, :1], PRIOR_SHARE)], dim=1)
    # Heavier tails than a Gaussian, but not so heavy that most draws of many dimensions are tail.
    return FirstProposal(
        StudentMixture(weights, means, factors, df=5.0 + dim), evaluations, unusual
    )
