"""Probabilities of intervals: of a Gaussian, and of a mixture of Gaussians, soft boxes and a tail.

All these distributions are symmetric. An interval above the centre is therefore mirrored to the one
below, where the difference of two small numbers keeps its digits.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

SQRT_2 = math.sqrt(2)


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


def log_mixture_interval(
    logits: Tensor,
    gaussians: tuple[Tensor, Tensor],
    boxes: tuple[Tensor, Tensor, Tensor],
    tail: tuple[Tensor, Tensor],
    low: Tensor,
    high: Tensor,
) -> Tensor:
    """Return log p(low < x_j <= high) of the mixture of each feature, `(..., features)`.

    Parameters
    ----------
    logits : Tensor
        Of Gaussians, boxes and tail, `(..., features, components)`.
    gaussians : tuple of Tensor
        Means and widths, `(..., features, gaussians)`.
    boxes : tuple of Tensor
        Centres, half-widths and softness, `(features, boxes)`.
    tail : tuple of Tensor
        Centre and scale, `(features, 1)`.
    low, high : Tensor
        Ends of the interval, `(..., features)`.

    Returns
    -------
    Tensor
        In float64.
    """
    low, high = low[..., None], high[..., None]
    mean, sigma = gaussians
    log_gaussian = log_gaussian_interval((low - mean) / sigma, (high - mean) / sigma)
    centre, half, soft = boxes
    width = half / soft
    in_box = _between(lambda x: _box_cdf(x, width), (low - centre) / soft, (high - centre) / soft)
    centre, scale = tail
    in_tail = _between(_tail_cdf, (low - centre) / scale, (high - centre) / scale)
    fixed = torch.cat([in_box, in_tail], dim=-1).log()
    fixed = fixed.expand(*log_gaussian.shape[:-1], -1)
    return torch.logsumexp(
        logits.log_softmax(dim=-1) + torch.cat([log_gaussian, fixed], dim=-1), dim=-1
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
