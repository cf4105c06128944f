"""Log density of a mixture of Gaussians, soft boxes and others, with hand-written derivatives.

With automatic differentiation this formula takes half of a training step, in a dozen passes over an
array of rows × features × components. The derivatives here need fewer passes and keep only what is
expensive to compute again.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from roundtrip.model.noise.gaussian import HALF_LOG_2PI

NEGLIGIBLE = -60.0
"""Exponents are cut off here: smaller terms do not count, and denormal numbers are slow."""


class MixtureLogDensity(torch.autograd.Function):
    """log Σ_c softmax(logits)_c p_c(x), where c counts Gaussians, then soft boxes, then the others.

    Shapes: logits `(..., features, gaussians + boxes + others)`, mean and sigma `(..., features,
    gaussians)`, centre, half and soft of the boxes `(features, boxes)`, x `(..., features, 1)`,
    and the log densities of the others at x `(..., features, others)`; the last two may have fewer
    leading dimensions. The result is `(..., features)`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        mean: Tensor,
        sigma: Tensor,
        centre: Tensor,
        half: Tensor,
        soft: Tensor,
        x: Tensor,
        log_others: Tensor,
    ) -> Tensor:
        """Return the log density."""
        gaussians, boxes = mean.shape[-1], centre.shape[-1]
        deviation = (x - mean) / sigma
        log_gaussian = deviation.square().mul_(-0.5).sub_(sigma.log()).sub_(HALF_LOG_2PI)
        log_box, inside_slope, outside_slope, side = _log_box(x, centre, half, soft)
        joint = torch.empty(
            (*log_gaussian.shape[:-1], logits.shape[-1]), dtype=log_gaussian.dtype, device=x.device
        )
        torch.add(logits[..., :gaussians], log_gaussian, out=joint[..., :gaussians])
        fixed = torch.cat([log_box, log_others], dim=-1)
        torch.add(logits[..., gaussians:], fixed, out=joint[..., gaussians:])
        log_joint, responsibility = _log_sum(joint)
        # The derivative of a narrow Gaussian far away is so large that a cut-off term would count.
        torch.threshold_(responsibility[..., :gaussians], 2 * math.exp(NEGLIGIBLE), 0.0)
        log_total, weight = _log_sum(logits.clone())
        ctx.save_for_backward(
            responsibility, weight, deviation, sigma, half, soft, inside_slope, outside_slope, side
        )
        ctx.x_shape, ctx.others_shape, ctx.boxes = x.shape, log_others.shape, boxes
        return log_joint - log_total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Return the derivatives in all arguments, in x only if it needs them."""
        responsibility, weight, deviation, sigma, half, soft, inside, outside, side = (
            ctx.saved_tensors
        )
        gradient = outputs[0][..., None]
        gaussians = deviation.shape[-1]
        of_component = gradient * responsibility
        of_logits = torch.addcmul(of_component, gradient, weight, value=-1)
        of_gaussian, of_box, of_others = of_component.tensor_split(
            [gaussians, gaussians + ctx.boxes], dim=-1
        )
        of_mean = of_gaussian * deviation / sigma
        of_sigma = torch.addcmul(-of_gaussian, of_gaussian * deviation, deviation).div_(sigma)
        # Boxes do not depend on z, so that gradients are summed over broadcast dimensions.
        of_box = of_box.sum_to_size(side.shape)
        of_inside, of_outside = of_box * inside, of_box * outside
        of_width = _over_rows(of_inside + of_outside)
        of_distance = (of_outside - of_inside).mul_(side.sign())
        box_total = _over_rows(of_box)
        # d/dw log(1 - e^(-2w)) with w = half / soft.
        width = half / soft
        of_width = of_width + box_total * 2 / torch.expm1(2 * width)
        of_centre = -_over_rows(of_distance) / soft
        of_half = of_width / soft - box_total / half
        of_soft = -(_over_rows(of_distance * side) + of_width * width) / soft
        of_x = None
        if ctx.needs_input_grad[6]:
            of_x = (of_distance / soft).sum(-1, keepdim=True) - of_mean.sum(
                -1, keepdim=True
            ).sum_to_size(ctx.x_shape)
        of_others = of_others.sum_to_size(ctx.others_shape) if ctx.needs_input_grad[7] else None
        return of_logits, of_mean, of_sigma, of_centre, of_half, of_soft, of_x, of_others


def log_box_density(x: Tensor, centre: Tensor, half: Tensor, soft: Tensor) -> Tensor:
    """Return the log densities of soft boxes at x, `(..., features, boxes)`."""
    return _log_box(x, centre, half, soft)[0]


def _log_box(
    x: Tensor, centre: Tensor, half: Tensor, soft: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return log (σ(d+w) - σ(d-w)) / 2 half, its slopes in w - |d| and w + |d|, and d.

    Here d = (x - centre) / soft and w = half / soft. The logarithm of the product
    σ(b) - σ(c) = σ(b) σ(-c) (1 - e^(c-b)) is precise for all b > c.
    """
    width = half / soft
    distance = (x - centre) / soft
    size = distance.abs()
    inside, outside = width - size, width + size
    decay_inside = inside.abs().neg_().clamp_min_(NEGLIGIBLE).exp_()
    decay_outside = outside.neg_().clamp_min_(NEGLIGIBLE).exp_()
    both = (1 + decay_inside).mul_(1 + decay_outside)
    log_box = inside.clamp_max(0).sub_(both.log_())
    log_box.add_(torch.log(-torch.expm1(-2 * width)) - torch.log(2 * half))
    inside_slope = torch.where(inside > 0, decay_inside, 1.0).div_(1 + decay_inside)
    return log_box, inside_slope, decay_outside.div_(1 + decay_outside), distance


def _log_sum(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return logsumexp and softmax along the last axis; overwrite the values."""
    largest = values.amax(dim=-1, keepdim=True)
    exponentials = values.sub_(largest).clamp_min_(NEGLIGIBLE).exp_()
    total = exponentials.sum(dim=-1, keepdim=True)
    return (largest + total.log())[..., 0], exponentials.div_(total)


def log_sum(values: Tensor) -> Tensor:
    """Return logsumexp along the last axis, without slow denormal numbers."""
    largest = values.amax(dim=-1, keepdim=True)
    total = (values - largest).clamp_min_(NEGLIGIBLE).exp_().sum(dim=-1)
    return total.log_().add_(largest[..., 0])


def _over_rows(values: Tensor) -> Tensor:
    return values.flatten(end_dim=-3).sum(0) if values.ndim > 2 else values
