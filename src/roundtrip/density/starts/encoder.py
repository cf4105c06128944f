"""First proposals around the encoder's posterior, or around H(x) if it gives a point."""

import math

import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.density.starts.bank import Bank, best_of_bank
from roundtrip.density.starts.refinement import GRADIENT_EVALUATIONS, refined
from roundtrip.density.weights import encoded, encoded_posterior
from roundtrip.model.adam import Adam
from roundtrip.model.core import RoundtripModel

ENCODED_EVALUATIONS = 1
POSTERIOR_SCALES, POSTERIOR_SHARES = (1.05, 1.7, 3.0), (0.86, 0.1, 0.04)
POINT_SCALES, POINT_SHARES = (0.1, 0.3, 1.0), (0.65, 0.22, 0.13)
"""Scales of the components in units of the posterior, or around a point, and their weights."""

USUAL_PLACE_SHARE, UNUSUAL_PLACE_SHARE = 0.05, 0.4
"""Weight of the components at maxima of p(x, z), for usual and unusual rows."""

REFINED_SHARE = 0.75
"""Weight of the components around a refined posterior; the others are around the encoder's."""

PLACE_WIDTHS = (0.05, 0.3)
CLIMB_STEPS, CLIMB_RATE = 60, 0.2
CLIMBS_PER_CALL = 64
STARTS = 2
CLIMB_EVALUATIONS = STARTS * CLIMB_STEPS * GRADIENT_EVALUATIONS
"""Evaluations of G that the climbs of an unusual row take."""


def encoded_components(
    model: RoundtripModel, x: Tensor, bank: Bank, *, unusual: bool, refines: bool
) -> tuple[list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    """Return components of several widths around the encoder's posterior, and their weights.

    Far from the data the posterior of the encoder may be wrong, and draws from it do not show that.
    Unusual rows therefore also get components at maxima of p(x, z), found from H(x) and the bank.
    Usual rows also get components around a posterior that is refined for each row.

    Parameters
    ----------
    model : RoundtripModel
        The model.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    bank : Bank
        Bank of the model.
    unusual : bool
        Whether the encoder does not know these rows.
    refines : bool
        Whether usual rows can afford a refinement.

    Returns
    -------
    components : list of tuple of Tensor
        Means, `(rows, latent_dim)`, and Cholesky factors, `(rows, latent_dim, latent_dim)`.
    weights : Tensor
        Weights of the components, `(rows, components)`.
    evaluations : Tensor
        Evaluations of G per row, `(rows,)`.
    """
    if model.has_posterior:
        mean, factor = encoded_posterior(model, x)
        scales, shares = POSTERIOR_SCALES, POSTERIOR_SHARES
    else:
        mean = encoded(model, x)
        factor = torch.eye(model.latent_dim, dtype=mean.dtype, device=mean.device)
        factor = factor.expand(len(x), -1, -1)
        scales, shares = POINT_SCALES, POINT_SHARES
    components = [(mean, scale * factor) for scale in scales]
    evaluations = torch.full((len(x),), ENCODED_EVALUATIONS, device=x.device)
    extra_shares = [1.0] * (STARTS * len(PLACE_WIDTHS))
    share = UNUSUAL_PLACE_SHARE if unusual else USUAL_PLACE_SHARE
    if unusual:
        starts = torch.stack([mean, best_of_bank(model, x, bank)], dim=1)
        identity = torch.eye(model.latent_dim, dtype=mean.dtype, device=mean.device)
        components += [
            (place, width * identity.expand_as(factor))
            for place in _climbed(model, x, starts).unbind(dim=1)
            for width in PLACE_WIDTHS
        ]
        evaluations += CLIMB_EVALUATIONS
    # As many components in each case, so that the mixtures of all rows have one shape.
    elif refines and model.has_posterior:
        better, width, spent = refined(model, x, mean, factor)
        components += [(better, scale * width) for scale in (*scales, scales[1])]
        extra_shares, share = [*shares[:1], shares[1] / 2, shares[2], shares[1] / 2], REFINED_SHARE
        evaluations += spent
    else:
        components += [(mean, scales[1] * factor)] * len(extra_shares)
    total = sum(extra_shares)
    weights = [(1 - share) * each for each in shares]
    weights += [share * each / total for each in extra_shares]
    return components, mean.new_tensor(weights).expand(len(x), -1), evaluations


def _climbed(model: RoundtripModel, x: Tensor, z: Tensor) -> Tensor:
    """Climb towards maxima of p(x, z) from `(rows, starts, latent_dim)` by steps of Adam."""
    rows, starts, dim = z.shape

    def of_block(block: Tensor) -> Tensor:
        points, start = block.tensor_split([x.shape[1]], dim=1)
        with torch.enable_grad():
            place = start.clone().requires_grad_()
            best, highest = start, torch.full_like(start[:, 0], -math.inf)
            adam = Adam([place], lr=CLIMB_RATE)
            for _ in range(CLIMB_STEPS):
                value = model.log_joint(points, place)
                better = value.detach() > highest
                highest = torch.where(better, value.detach(), highest)
                best = torch.where(better[:, None], place.detach(), best)
                (place.grad,) = torch.autograd.grad(-value.sum(), place)
                place.grad.nan_to_num_()
                adam.step()
        return best

    joined = torch.cat([x.repeat_interleave(starts, dim=0), z.flatten(0, 1)], dim=1)
    return map_blocks(of_block, joined, CLIMBS_PER_CALL).view(rows, starts, dim)
