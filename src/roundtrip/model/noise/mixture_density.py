"""Log density of a mixture of Gaussians, soft boxes and a tail, with hand-written derivatives.

With automatic differentiation this formula takes most of a training step, in dozens of passes over
an array of rows × features × components. Here it needs few: the weights of components are computed
once, and boxes and tail, which do not depend on z, are densities rather than logarithms.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import logsigmoid, softplus

from roundtrip.model.noise.gaussian import HALF_LOG_2PI

NEGLIGIBLE = -60.0
"""Exponents of scoring are cut off here: smaller terms do not count, and denormal numbers are slow.
"""

SMALLEST_EXPONENT = {torch.float32: -40.0, torch.float64: -80.0}
"""Those of training, whose exponentials are multiplied with each other."""

SMALLEST_DENSITY = 1e-12
"""Of x_j given z, relative to all boxes and the tail with a weight of one. At a smaller density
exponentials that were cut off may count."""

SMALLEST_HEIGHT = 1e-25
"""Density of all boxes and the tail that relative ones refer to at least, far from the data."""

LOWEST, LARGEST_FLOAT32_DEVIATION = -1e30, 1e15
"""Log density of a Gaussian, and its deviation in widths, that are not exceeded: a square must be
finite in float32."""


@dataclass(frozen=True)
class MixtureConstants:
    """What a mixture does not learn.

    Attributes
    ----------
    moving : int
        Number of Gaussians of a feature.
    offsets, first_width, first_raw, first_logits : Tensor
        Means in units of `first_width`, widths and log weights before training.
    floor : Tensor
        Smallest width, `(features, 1)`.
    tail : Tensor
        Densities of the tails at x, `(..., features, 1)`.
    """

    moving: int
    offsets: Tensor
    first_width: Tensor
    first_raw: Tensor
    first_logits: Tensor
    floor: Tensor
    tail: Tensor


def parts(outputs: Tensor, features: int, moving: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return locations `(..., features)`, then logits, shifts and raw widths of components."""
    location, rest = outputs.split([features, outputs.shape[-1] - features], dim=-1)
    rest = rest.unflatten(-1, (features, -1))
    components = rest.shape[-1] - 2 * moving
    logits, shift, raw = rest.split([components, moving, moving], dim=-1)
    return location, logits, shift, raw


class MixtureLogDensity(torch.autograd.Function):
    """log p(x_j | z) and whether it is too small to be precise.

    Shapes: outputs of G `(..., n_outputs)`; centre, half-width and softness of the boxes
    `(features, boxes)`; x `(..., features)`, which may have fewer leading dimensions. The results
    are `(..., features)`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        outputs: Tensor,
        centre: Tensor,
        half: Tensor,
        soft: Tensor,
        x: Tensor,
        constants: MixtureConstants,
    ) -> tuple[Tensor, Tensor]:
        """Return the log density and the mask."""
        moving, cut = constants.moving, SMALLEST_EXPONENT[outputs.dtype]
        location, logits, shift, raw = parts(outputs, x.shape[-1], moving)
        top = logits.amax(dim=-1, keepdim=True)
        weight = (logits - top).clamp_min_(cut).exp_()
        share = constants.first_logits.exp()
        total = weight @ share
        # Boxes: (σ(width - distance) - σ(-width - distance)) / 2 half, without cancellation.
        distance = (x[..., None] - centre).div_(soft)
        size, width = distance.abs(), half / soft
        inside = (width - size).clamp_min_(cut).sigmoid_()
        outside = size.add_(width).neg_().clamp_min_(cut).sigmoid_()
        box = (inside - outside).div_(2 * half)
        fixed = torch.cat([box, constants.tail], dim=-1).mul_(share[moving:])
        of_fixed = (weight[..., moving:] * fixed).sum(dim=-1)
        raw = raw + constants.first_raw
        sigma = softplus(raw).add_(constants.floor)
        deviation = (shift + constants.offsets).mul_(-constants.first_width)
        deviation = deviation.add_((x - location)[..., None]).div_(sigma)
        gaussian = (logits[..., :moving] - top).add_(constants.first_logits[:moving] - HALF_LOG_2PI)
        gaussian = gaussian.sub_(sigma.log()).addcmul_(deviation, deviation, value=-0.5)
        gaussian = gaussian.clamp_min_(LOWEST)
        largest = gaussian.amax(dim=-1, keepdim=True)
        of_gaussians = (gaussian - largest).clamp_min_(cut).exp_().sum(-1).log_()
        of_gaussians = of_gaussians.add_(largest[..., 0])
        log_joint = torch.logaddexp(of_gaussians, of_fixed.log())
        height = fixed.sum(dim=-1).clamp_min_(SMALLEST_HEIGHT)
        imprecise = log_joint < (SMALLEST_DENSITY * height).log()
        ctx.save_for_backward(
            weight, total, fixed, distance, inside, outside, half, soft,
            gaussian, deviation, sigma, raw, log_joint, share,
        )  # fmt: skip
        ctx.constants = constants
        ctx.mark_non_differentiable(imprecise)
        return log_joint - total.log(), imprecise

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the derivatives in the outputs of G and in the parameters of the boxes."""
        (
            weight, total, fixed, distance, inside, outside, half, soft,
            gaussian, deviation, sigma, raw, log_joint, share,
        ) = ctx.saved_tensors  # fmt: skip
        constants = ctx.constants
        moving: int = constants.moving
        features, boxes = half.shape
        gradient = gradients[0]
        outputs = weight.new_empty(
            *weight.shape[:-2], features * (1 + weight.shape[-1] + 2 * moving)
        )
        location, logits, shift, width = parts(outputs, features, moving)
        # The derivative of a narrow Gaussian far away is so large that a cut-off term would count.
        cut = SMALLEST_EXPONENT[weight.dtype]
        share_of = (gaussian - log_joint[..., None]).clamp_min_(cut).exp_()
        share_of = torch.threshold_(share_of, 2 * math.exp(cut), 0.0).mul_(gradient[..., None])
        scaled = share_of * deviation
        of_mean = scaled / sigma
        torch.sum(of_mean, dim=-1, out=location)
        torch.mul(of_mean, constants.first_width, out=shift)
        of_sigma = (scaled * deviation).sub_(share_of).div_(sigma)
        torch.mul(of_sigma, raw.sigmoid(), out=width)
        # d log Σ weight share p / d logit, less that of the normalising total.
        of_total = (-gradient / total)[..., None] * share
        torch.addcmul(
            share_of, weight[..., :moving], of_total[..., :moving], out=logits[..., :moving]
        )
        of_fixed = gradient * (-log_joint).exp()
        coefficient = of_total[..., moving:].addcmul_(fixed, of_fixed[..., None])
        torch.mul(weight[..., moving:], coefficient, out=logits[..., moving:])
        if not boxes:
            return outputs, *(torch.zeros_like(half),) * 3, None, None
        # Boxes do not depend on z, so that gradients are summed over draws and rows.
        of_box = weight[..., moving:-1] * of_fixed[..., None]
        of_box = of_box.sum_to_size(distance.shape).mul_(share[moving:-1] / (2 * half))
        height = _over_rows(of_box * (inside - outside))
        of_inside = of_box * (inside - inside.square())
        of_outside = of_box.mul_(outside - outside.square())
        of_width = _over_rows(of_inside + of_outside)
        of_distance = of_outside.sub_(of_inside).mul_(distance.sign())
        of_centre = -_over_rows(of_distance) / soft
        of_half = of_width / soft - height / half
        of_soft = -(_over_rows(of_distance * distance) + of_width * half / soft) / soft
        return outputs, of_centre, of_half, of_soft, None, None


def exact_log_density(
    logits: Tensor, mean: Tensor, sigma: Tensor, log_fixed: Tensor, x: Tensor
) -> Tensor:
    """Return log p(x_j | z) by logarithms only, precise wherever x is; differentiable in all.

    Shapes: logits `(..., features, components)`, mean and sigma `(..., features, gaussians)`, log
    densities of boxes and tail at x `(..., features, boxes + 1)`, x `(..., features)`.
    """
    deviation = ((x[..., None] - mean) / sigma).clamp(
        -LARGEST_FLOAT32_DEVIATION, LARGEST_FLOAT32_DEVIATION
    )
    gaussian = -0.5 * deviation.square() - sigma.log() - HALF_LOG_2PI
    joint = torch.cat([gaussian, log_fixed.expand(*gaussian.shape[:-1], -1)], dim=-1)
    return torch.logsumexp(logits.log_softmax(dim=-1) + joint, dim=-1)


def log_box_density(x: Tensor, centre: Tensor, half: Tensor, soft: Tensor) -> Tensor:
    """Return log (σ(d+w) - σ(d-w)) / 2 half, `(..., features, boxes)`.

    Here d = (x - centre) / soft and w = half / soft. The logarithm of the product
    σ(b) - σ(c) = σ(b) σ(-c) (1 - e^(c-b)) is precise for all b > c.
    """
    width, size = half / soft, ((x - centre) / soft).abs()
    log_box = logsigmoid(width - size) + logsigmoid(width + size)
    return log_box + torch.log(-torch.expm1(-2 * width)) - torch.log(2 * half)


def _over_rows(values: Tensor) -> Tensor:
    return values.flatten(end_dim=-3).sum(0) if values.ndim > 2 else values
