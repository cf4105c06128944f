"""Probabilities of intervals: of a Gaussian, and of a mixture of Gaussians, soft boxes and a tail.

All these distributions are symmetric. An interval above the centre is therefore mirrored to the one
below, where the difference of two small numbers keeps its digits.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

SQRT_2 = math.sqrt(2)

NEGLIGIBLE_SHARE = 1e-9
"""Of an average of mixtures: Gaussians that have less together are left out."""


def log_gaussian_interval(low: Tensor, high: Tensor) -> Tensor:
    """Return log p(low < x <= high) of a standard normal x, precise however far out.

    Examples
    --------
    >>> low, high = torch.tensor([-1.0, 50.0]).double(), torch.tensor([1.0, 51.0]).double()
    >>> log_gaussian_interval(low, high).round(decimals=3).tolist()
    [-0.382, -1254.831]
    """
    low, high = _mirrored(low, high)
    upper = torch.special.log_ndtr(high)
    # Of an empty interval: the difference of equal logarithms, which may both be infinite.
    gap = torch.where(high > low, torch.special.log_ndtr(low) - upper, 0.0)
    return upper + torch.log(-torch.expm1(gap))


class MixtureParts(NamedTuple):
    """A mixture of each feature, in float64.

    Attributes
    ----------
    logits : Tensor
        Of Gaussians, boxes and tail, `(..., features, components)`.
    gaussians : tuple of Tensor
        Means and widths, `(..., features, gaussians)`.
    boxes : tuple of Tensor
        Centres, half-widths and softness, `(features, boxes)`.
    tail : tuple of Tensor
        Centre and scale, `(features, 1)`.
    """

    logits: Tensor
    gaussians: tuple[Tensor, Tensor]
    boxes: tuple[Tensor, Tensor, Tensor]
    tail: tuple[Tensor, Tensor]


def log_mixture_interval(mixture: MixtureParts, low: Tensor, high: Tensor) -> Tensor:
    """Return log p(low < x_j <= high) of ends `(..., features)`, precise however far out."""
    low, high = low[..., None], high[..., None]
    mean, sigma = mixture.gaussians
    log_gaussian = log_gaussian_interval((low - mean) / sigma, (high - mean) / sigma)
    centre, half, soft = mixture.boxes
    width = half / soft
    in_box = _between(lambda x: _box_cdf(x, width), (low - centre) / soft, (high - centre) / soft)
    centre, scale = mixture.tail
    in_tail = _between(_tail_cdf, (low - centre) / scale, (high - centre) / scale)
    fixed = torch.cat([in_box, in_tail], dim=-1).log()
    fixed = fixed.expand(*log_gaussian.shape[:-1], -1)
    log_parts = torch.cat([log_gaussian, fixed], dim=-1)
    return torch.logsumexp(mixture.logits.log_softmax(dim=-1) + log_parts, dim=-1)


def mixture_cdf(mixture: MixtureParts, x: Tensor) -> Tensor:
    """Return p(x_j <= x), `(..., features)`: quicker than an interval, precise to digits of 1."""
    x = x[..., None]
    weights, (mean, sigma) = mixture.logits.softmax(dim=-1), mixture.gaussians
    moving, fixed = weights.split([mean.shape[-1], weights.shape[-1] - mean.shape[-1]], dim=-1)
    centre, half, soft = mixture.boxes
    in_box = _box_cdf((x - centre) / soft, half / soft)
    in_tail = _tail_cdf((x - mixture.tail[0]) / mixture.tail[1])
    of_gaussians = (moving * torch.special.ndtr((x - mean) / sigma)).sum(-1)
    return of_gaussians + (fixed * torch.cat([in_box, in_tail], dim=-1)).sum(-1)


def averaged(mixture: MixtureParts, weights: Tensor) -> MixtureParts:
    """Return the average of mixtures of one feature as one mixture with more Gaussians.

    Parameters
    ----------
    mixture : MixtureParts
        Mixtures `(rows, draws, 1, ...)` of one feature.
    weights : Tensor
        Weights of the draws, `(rows, draws)`, which sum to 1.

    Returns
    -------
    MixtureParts
        Mixtures `(rows, 1, ...)`, without Gaussians of negligible weight. Boxes and tail, which the
        draws share, get their mean weights.
    """
    mean, sigma = (part[:, :, 0].flatten(1) for part in mixture.gaussians)
    shares = mixture.logits.softmax(dim=-1)[:, :, 0] * weights[..., None]
    gaussians = mixture.gaussians[0].shape[-1]
    moving, fixed = shares[..., :gaussians].flatten(1), shares[..., gaussians:].sum(1)
    ordered, order = moving.sort(dim=1, descending=True)
    left = moving.sum(1, keepdim=True) - ordered.cumsum(1)
    kept = order[:, : int((left > NEGLIGIBLE_SHARE).sum(1).max()) + 1]
    mean, sigma, moving = (part.gather(1, kept) for part in (mean, sigma, moving))
    logits = torch.cat([moving, fixed], dim=1).log()
    return MixtureParts(
        logits[:, None, None], (mean[:, None, None], sigma[:, None, None]), *mixture[2:]
    )


def tail_variance(smallest_level: float) -> float:
    """Return the variance of draws of the tail, in units of its scale.

    A Student t distribution with 2 degrees of freedom has none. Draws lie between two quantiles,
    and have one.

    Examples
    --------
    >>> round(tail_variance(1e-7), 3)
    15.118
    """
    # E(t²) of t = (2u - 1) / sqrt(2u(1 - u)) for u between the levels, and at the levels.
    return math.log((1 - smallest_level) / smallest_level) - 1


def _between(cdf: Callable[[Tensor], Tensor], low: Tensor, high: Tensor) -> Tensor:
    low, high = _mirrored(low, high)
    return (cdf(high) - cdf(low)).clamp_min(0.0)


def _mirrored(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    above = low > 0
    return torch.where(above, -high, low), torch.where(above, -low, high)


def _box_cdf(x: Tensor, width: Tensor) -> Tensor:
    """Return the cdf of a uniform variable on ± width plus a standard logistic one.

    It is the integral of a logistic function between two points, a difference of softplus
    functions.
    """
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    # A softplus grows with x without end; the difference does not.
    x = torch.minimum(x, width + 100.0)
    upper, lower = torch.logaddexp(x + width, zero), torch.logaddexp(x - width, zero)
    return (upper - lower) / (2 * width)


def _tail_cdf(t: Tensor) -> Tensor:
    """Return the cdf of a Student t distribution with 2 degrees of freedom."""
    size = t.abs()
    root = torch.hypot(size, torch.full_like(size, SQRT_2))
    below = 1 / (root * (root + size))
    return torch.where(t > 0, 1 - below, below)
