"""Draws of one feature within a limit, by the inverse of its cdf."""

from collections.abc import Callable

import torch
from torch import Tensor

from roundtrip.model.noise.base import ObservationModel, gumbel_argmax
from roundtrip.model.noise.limited import Limit, log_levels

ITERATIONS = 64
FARTHEST = 1e12
"""Stands for infinity, in scaled units."""


def draw_within(
    noise: ObservationModel, place: int, limit: Limit, outputs: Tensor, rng: torch.Generator
) -> Tensor:
    """Draw one feature given z and that it lies in its limit, `(rows,)`.

    Parameters
    ----------
    noise : ObservationModel
        Observation model of all features.
    place : int
        Place of the feature.
    limit : Limit
        Its limit.
    outputs : Tensor
        Outputs of G, `(rows, n_outputs)`.
    rng : torch.Generator
        Source of the draws, on the CPU.

    Returns
    -------
    Tensor
        Numbers in scaled units, or places of levels; float64.
    """
    one, needed = noise.factor(place)
    own = outputs[:, needed].double()
    if isinstance(limit, frozenset):
        levels = torch.tensor(sorted(limit), device=own.device)
        return levels[gumbel_argmax(log_levels(one, own)[:, levels], rng)].double()
    low, high = (torch.full_like(own[:, :1], end) for end in limit)
    share = torch.rand(low.shape, generator=rng, dtype=torch.float64).to(own.device)
    log_target = share.log() + one.log_interval(own, low, high)

    def reached(x: Tensor) -> Tensor:
        return one.log_interval(own, low, x) >= log_target

    return bisected(reached, low, high)[:, 0]


def bisected(
    reached: Callable[[Tensor], Tensor], low: Tensor, high: Tensor, iterations: int = ITERATIONS
) -> Tensor:
    """Return where a monotone function reaches a level, between `low` and `high`.

    Parameters
    ----------
    reached : callable
        Whether the function has reached the level at x; false below some x and true above.
    low, high : Tensor
        Ends, float64; they may be infinite.
    iterations : int, default=64
        Number of bisections.

    Returns
    -------
    Tensor
        The places, in the shape of `low`.

    Examples
    --------
    >>> ends = torch.tensor([torch.inf]).double()
    >>> bisected(lambda x: x**3 >= 8, -ends, ends).round(decimals=9)
    tensor([2.], dtype=torch.float64)
    """
    # Halves of asinh(x) are halves of x near 0 and of the order of magnitude far away.
    low, high = (end.clamp(-FARTHEST, FARTHEST).asinh() for end in (low, high))
    for _ in range(iterations):
        middle = (low + high) / 2
        above = reached(middle.sinh())
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return ((low + high) / 2).sinh()
