"""First proposals around the encoder's posterior, or around H(x) if it gives a point."""

import math

import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.density.starts.bank import Bank, best_of_bank
from roundtrip.density.weights import encoded, encoded_posterior
from roundtrip.model.adam import Adam
from roundtrip.model.core import RoundtripModel

ENCODED_EVALUATIONS = 1
POSTERIOR_SCALES, POSTERIOR_SHARES = (1.05, 1.7, 3.0), (0.86, 0.1, 0.04)
POINT_SCALES, POINT_SHARES = (0.1, 0.3, 1.0), (0.65, 0.22, 0.13)
"""Scales of the components in units of the posterior, or around a point, and their weights."""

USUAL_PLACE_SHARE, UNUSUAL_PLACE_SHARE = 0.05, 0.4
"""Weight of the components at maxima of p(x, z), for usual and unusual rows."""

PLACE_WIDTHS = (0.05, 0.3)
CLIMB_STEPS, CLIMB_RATE = 60, 0.2
CLIMBS_PER_CALL = 64
GRADIENT_EVALUATIONS = 3
"""Evaluations of G that take as long as a value with its gradient."""

STARTS = 2
CLIMB_EVALUATIONS = STARTS * CLIMB_STEPS * GRADIENT_EVALUATIONS
"""Evaluations of G that the climbs of an unusual row take."""


def encoded_components(
    model: RoundtripModel, x: Tensor, bank: Bank, *, unusual: bool
) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """Return components of several widths around the encoder's posterior, and their weights.

    Far from the data the posterior of the encoder may be wrong, and draws from it do not show that.
    Unusual rows therefore also get components at maxima of p(x, z), found from H(x) and the bank.

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

    Returns
    -------
    components : list of tuple of Tensor
        Means, `(rows, latent_dim)`, and Cholesky factors, `(rows, latent_dim, latent_dim)`.
    weights : Tensor
        Weights of the components, `(rows, components)`.
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
    if unusual:
        starts = torch.stack([mean, best_of_bank(model, x, bank)], dim=1)
        identity = torch.eye(model.latent_dim, dtype=mean.dtype, device=mean.device)
        components += [
            (place, width * identity.expand_as(factor))
            for place in _climbed(model, x, starts).unbind(dim=1)
            for width in PLACE_WIDTHS
        ]
    else:  # as many components, so that the mixtures of all rows have one shape
        components += [(mean, scales[1] * factor)] * (STARTS * len(PLACE_WIDTHS))
    extra = len(components) - len(scales)
    share = UNUSUAL_PLACE_SHARE if unusual else USUAL_PLACE_SHARE
    weights = [(1 - share) * each for each in shares] + [share / extra] * extra
    return components, mean.new_tensor(weights).expand(len(x), -1)


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
