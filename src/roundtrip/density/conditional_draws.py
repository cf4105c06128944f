"""Rows drawn given a part of them: z given what is known, then x given z.

Draws of z come from the settled proposal. Of a pool of several times as many as wanted, as the
effective sample size tells, some are chosen by their importance weights (resampling), so that two
rows hardly ever share a z.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.part_posterior import (
    ROWS_AT_ONCE,
    PartPosterior,
    WeightedCodes,
    check_possible,
    distinct_rows,
)
from roundtrip.density.prepared import PreparedModel
from roundtrip.exceptions import DensityWarning, warn_user
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import Limit
from roundtrip.model.noise.truncated import draw_within
from roundtrip.parameters import named_seed

FEWEST = 512
"""Draws of z that tell how many more are needed."""

SPARE = 10
"""Effective draws of z in the pool for each row that is drawn."""

MOST = 2**18
"""Draws of z per row at most."""

MOST_REDRAWS = 20
"""How often cells outside of the range of fit are drawn again, and z that lead outside."""


@torch.no_grad()
def rows_given(
    prepared: PreparedModel,
    x: Tensor,
    count: int,
    *,
    limits: Mapping[int, Limit],
    seed: int,
    draw_seed: int,
    outside: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Draw rows given observed cells and limits of others.

    Parameters
    ----------
    prepared : PreparedModel
        Model without a context.
    x : Tensor
        Observed cells in scaled units, `(rows, features)`, NaN for all others.
    count : int
        Draws for each row.
    limits : mapping
        Limits of further cells, by the place of the feature.
    seed : int
        Seed of the proposals.
    draw_seed : int
        Seed of the draws.
    outside : callable or None, default=None
        Which cells of `(rows, features)` are to be drawn again.

    Returns
    -------
    Tensor
        Complete rows, `(rows * count, features)`, the draws of each row one after the other.
    """
    rng = torch.Generator().manual_seed(named_seed(draw_seed, "draws of cells") % 2**63)
    # Equal rows would have equal draws of z. They share a pool, the larger the more of them.
    distinct, group = distinct_rows(x)
    counts = count * group.bincount()
    parts, poor = [], 0
    for block, of_block in zip(
        distinct.split(ROWS_AT_ONCE), counts.split(ROWS_AT_ONCE), strict=True
    ):
        posterior = PartPosterior.settled(prepared, block, limits=limits, seed=seed)
        pools = _pools(posterior, of_block, draw_seed)
        poor += sum(not bool(pool.converged[row]) for pool, row in pools)
        row = torch.arange(len(block), device=x.device).repeat_interleave(of_block)
        known, model = block[row], posterior.model
        drawn = torch.empty_like(known)
        left, among = torch.arange(len(row), device=x.device), of_block
        for _ in range(MOST_REDRAWS if outside else 1):
            z = _chosen(pools, among, rng)
            drawn[left] = _cells_given(model, z, known[left], limits, rng, outside)
            if outside is None:
                break
            missed = outside(drawn[left].masked_fill(~known[left].isnan(), torch.nan)).any(dim=1)
            if not missed.any():
                break
            left = left[missed]
            among = row[left].bincount(minlength=len(block))
        parts.append(drawn)
    if poor:
        warn_user(
            f"{poor} of {len(distinct)} conditions have draws of z whose importance weights are "
            "too uneven (pareto_k); rows drawn given them may not follow the conditional density.",
            DensityWarning,
        )
    order = group.repeat_interleave(count).argsort(stable=True)
    return torch.cat(parts)[order.argsort()]


def _pools(posterior: PartPosterior, counts: Tensor, seed: int) -> list[tuple[WeightedCodes, int]]:
    """Return a pool of draws of z for each row, and the place of the row in it."""
    posterior, trial = posterior.reliable_draws(FEWEST, seed=seed, stream="trial of a pool")
    check_possible(trial.log_density, "given=")
    doublings = (SPARE * counts / trial.ess).log2().ceil().clamp(0, math.log2(MOST / FEWEST))
    pools: list[tuple[WeightedCodes, int] | None] = [None] * len(trial.ess)
    for power in doublings.unique().tolist():
        among = (doublings == power).nonzero()[:, 0]
        pool = posterior[among].draws(FEWEST * 2 ** int(power), seed=seed, stream="pool")
        for place, row in enumerate(among.tolist()):
            pools[row] = pool, place
    return [pool for pool in pools if pool is not None]


def _chosen(pools: list[tuple[WeightedCodes, int]], counts: Tensor, rng: torch.Generator) -> Tensor:
    """Return draws of z: `counts` of them from the pool of each row."""
    return torch.cat(
        [
            pool.z[row, resampled(pool.weights[row], count, rng)]
            for (pool, row), count in zip(pools, counts.tolist(), strict=True)
        ]
    )


def _cells_given(
    model: RoundtripModel,
    z: Tensor,
    known: Tensor,
    limits: Mapping[int, Limit],
    rng: torch.Generator,
    outside: Callable[[Tensor], Tensor] | None,
) -> Tensor:
    """Draw rows given z, around `known` cells.

    Cells outside of the range of fit are drawn again, given the same z: cut off at its ends, they
    would pile up there.
    """
    outputs = map_blocks(model.outputs_of, z, EVALUATIONS_PER_CALL).double()

    def draw(rows: Tensor) -> Tensor:
        drawn = model.noise.sample(outputs[rows], rng).double()
        for place, limit in limits.items():
            drawn[:, place] = draw_within(model.noise, place, limit, outputs[rows], rng)
        return torch.where(known[rows].isnan(), drawn, known[rows])

    rows = torch.arange(len(z), device=z.device)
    drawn = draw(rows)
    for _ in range(MOST_REDRAWS if outside else 0):
        assert outside is not None
        cells = outside(drawn[rows].masked_fill(~known[rows].isnan(), torch.nan))
        missed = cells.any(dim=1)
        if not missed.any():
            break
        rows = rows[missed]
        drawn[rows] = torch.where(cells[missed], draw(rows), drawn[rows])
    return drawn


def resampled(weights: Tensor, count: int, rng: torch.Generator) -> Tensor:
    """Choose `count` draws by their weights, in random order.

    Draws are put into random order and chosen at equal distances on the scale of their summed
    weights, so that none is chosen twice unless its weight is above 1 / count.

    Parameters
    ----------
    weights : Tensor
        `(draws,)`, which sum to 1.
    count : int
        Number of choices.
    rng : torch.Generator
        Source of randomness, on the CPU.

    Returns
    -------
    Tensor
        Indices, `(count,)`.

    Examples
    --------
    >>> resampled(torch.tensor([0.0, 1.0, 0.0]).double(), 2, torch.Generator())
    tensor([1, 1])
    """
    order = torch.randperm(len(weights), generator=rng).to(weights.device)
    start = torch.rand(1, generator=rng, dtype=torch.float64).to(weights.device)
    ends = weights[order].cumsum(0)
    places = (start + torch.arange(count, device=weights.device)) / max(count, 1) * ends[-1]
    chosen = torch.searchsorted(ends, places, right=True).clamp_max(len(weights) - 1)
    shuffled = torch.randperm(count, generator=rng).to(weights.device)
    return order[chosen[shuffled]]
