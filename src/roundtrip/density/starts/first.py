"""The first proposal of each row: a mixture around likely values of z, with the prior."""

from dataclasses import dataclass

import torch
from torch import Tensor

from roundtrip.density.mixture import StudentMixture
from roundtrip.density.part_encoder import PartEncoder
from roundtrip.density.starts.bank import Bank, climbs
from roundtrip.density.starts.climbing import climbed_components, most_climb_evaluations
from roundtrip.density.starts.encoder import (
    CLIMB_EVALUATIONS,
    ENCODED_EVALUATIONS,
    encoded_components,
)
from roundtrip.density.starts.parts import part_components
from roundtrip.density.starts.refinement import most_refinement_evaluations
from roundtrip.model.core import RoundtripModel

FARTHEST_START = 1e3
"""Largest coordinate of a component. Farther out the prior density is zero in float64."""

PRIOR_SHARE = 0.08
"""Weight of the prior in the proposal, which bounds the importance weights."""


@dataclass(frozen=True)
class FirstProposal:
    """The first proposals of all rows.

    Attributes
    ----------
    mixture : StudentMixture
        One mixture per row.
    evaluations : Tensor
        Evaluations of G spent on each row, `(rows,)`.
    """

    mixture: StudentMixture
    evaluations: Tensor


def most_start_evaluations(
    model: RoundtripModel, *, unusual: bool = False, refines: bool = False
) -> int:
    """Return the largest number of evaluations of G per row that `first_proposal` takes."""
    if climbs(model):
        return most_climb_evaluations(model.latent_dim)
    if unusual:
        return ENCODED_EVALUATIONS + CLIMB_EVALUATIONS
    refinement = most_refinement_evaluations(model.latent_dim) if refines else 0
    return ENCODED_EVALUATIONS + refinement


def first_proposal(
    model: RoundtripModel,
    x: Tensor,
    bank: Bank,
    *,
    unusual: bool,
    refines: bool = False,
    parts: PartEncoder | None = None,
) -> FirstProposal:
    """Return a mixture for each row around likely values of its z.

    With an encoder that gives a posterior, the mixture lies around that posterior, for usual rows
    also around a refined one, and for unusual rows also around maxima of p(x, z). Without one it
    lies around maxima of p(x, z).

    Parameters
    ----------
    model : RoundtripModel
        The model.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    bank : Bank
        Bank of the model.
    unusual : bool
        Whether the encoder does not know these rows, see `unusual_rows`.
    refines : bool, default=False
        Whether usual rows can afford a refinement.
    parts : PartEncoder or None, default=None
        Encoder of parts of rows, if cells of these rows are missing that were not in training.

    Returns
    -------
    FirstProposal
        The mixtures.
    """
    rows, dim = len(x), model.latent_dim
    if parts is not None:
        components, weights, evaluations = part_components(parts, x)
    elif climbs(model):
        components, weights, evaluations = climbed_components(model, x, bank)
    else:
        components, weights, evaluations = encoded_components(
            model, x, bank, unusual=unusual, refines=refines
        )
    prior_mean, prior_factor = (part.to(x.device) for part in model.prior.moments())
    components.append((prior_mean.expand(rows, dim), prior_factor.expand(rows, dim, dim)))
    means, factors = (torch.stack(part, dim=1) for part in zip(*components, strict=True))
    # For distant rows the linearised G may lead to infinite values: the prior replaces these.
    failed = ~((means.abs() < FARTHEST_START).all(-1) & factors.isfinite().flatten(2).all(-1))
    means = torch.where(failed[..., None], prior_mean, means)
    factors = torch.where(failed[..., None, None], prior_factor, factors)
    weights = (1 - PRIOR_SHARE) * weights
    weights = torch.cat([weights, torch.full_like(weights[:, :1], PRIOR_SHARE)], dim=1)
    # Tails are heavier than Gaussian, but in many dimensions not so heavy that most draws are tail.
    return FirstProposal(StudentMixture(weights, means, factors, df=5.0 + dim), evaluations)
