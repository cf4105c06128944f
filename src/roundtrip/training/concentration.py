"""A warning for fits whose density concentrates on single values of a column."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Rows, Schema
from roundtrip.data.kinds import CategoryColumn
from roundtrip.exceptions import warn_user
from roundtrip.model.core import RoundtripModel
from roundtrip.training.bound import importance_weighted_bound
from roundtrip.training.data import CONTINUOUS_FLOOR, FittingData

MOST_DISTINCT = 0.7
"""Distinct values per row up to which a column has many repeated values."""

LARGEST_LOSS = 1.0
"""Nats that a row may lose when it is moved off the values of a column."""

FARTHEST = 0.1
"""Largest move in standard deviations of the column: farther, any density may be lower."""

LARGEST_OF_A_ROW = 10.0
"""Nats beyond which the loss of a single row does not count, so that no row decides alone."""

ROWS, DRAWS, COLUMNS, SORTED_ROWS = 50, 20, 5, 10_000
"""Limits that keep the test to a fraction of a second."""


def warn_of_concentration(
    model: RoundtripModel, data: FittingData, schema: Schema, seed: int
) -> None:
    """Issue one warning if the density is much higher at single values than between them.

    Parameters
    ----------
    model : RoundtripModel
        The trained model; one without a posterior is not tested.
    data : FittingData
        Training and validation rows.
    schema : Schema
        Names and rounding of the columns.
    seed : int
        Seed of the draws.
    """
    if not model.has_posterior:
        return
    losses = concentration(model, data, _suspects(data, schema), seed)
    found = {place: loss for place, loss in losses.items() if loss > LARGEST_LOSS}
    if not found:
        return
    names = schema.columns or [f"x{place}" for place in range(schema.features)]
    listed = ", ".join(f"{names[place]} ({loss:.1f} nats)" for place, loss in found.items())
    warn_user(
        "the density concentrates on single values of columns with many repeated values, for which "
        f"no rounding step was found: {listed}. In brackets is what rows lose when they are "
        "moved a little. Log densities of such rows say little. Give the values as "
        "they were before a transformation (counts instead of their logarithms), or add uniform "
        "noise as wide as their rounding."
    )


def concentration(
    model: RoundtripModel, data: FittingData, columns: Sequence[int], seed: int
) -> dict[int, float]:
    """Return the nats that validation rows lose when they are moved off the values of a column.

    They are moved by half the usual gap between neighbouring values, but not far.

    Parameters
    ----------
    model : RoundtripModel
        The trained model, whose encoder gives a posterior.
    data : FittingData
        Training and validation rows.
    columns : sequence of int
        The columns to test.
    seed : int
        Seed of the draws.

    Returns
    -------
    dict of int to float
        Mean loss of the bound by column.
    """
    if not columns:
        return {}
    rng = torch.Generator(data.validation.device).manual_seed(seed)
    rows = data.spread(data.validation[:ROWS], rng)
    sign = torch.where(torch.rand(len(rows), generator=rng, device=rows.device) < 0.5, -1.0, 1.0)

    @torch.no_grad()
    def bound(x: Tensor) -> Tensor:
        draws = torch.Generator(rows.device).manual_seed(seed)
        moved = Rows(x, rows.context).to(torch.float32)
        return importance_weighted_bound(model, moved, n_draws=DRAWS, rng=draws).double()

    usual, losses = bound(rows.x), {}
    for place in columns:
        column = data.training.x[:SORTED_ROWS, place]
        column = column[~column.isnan()]
        half = column.unique().diff().median() / 2
        moved = rows.x.clone()
        moved[:, place] += sign * torch.minimum(half, FARTHEST * column.std())
        # The mean, because often only some of the values attract the density.
        loss = (usual - bound(moved)).clamp(-LARGEST_OF_A_ROW, LARGEST_OF_A_ROW)
        losses[place] = loss[~rows.x[:, place].isnan()].mean().nan_to_num().item()
    return losses


def _suspects(data: FittingData, schema: Schema) -> list[int]:
    """Return the columns with many repeated values whose rounding is absent or negligible."""
    if not schema.rounding:  # images
        return []
    both = torch.cat([data.training.x, data.validation.x])
    n_rows = (~both.isnan()).sum(dim=0).cpu().numpy()
    # As small as the least width of noise, so that spreading over it fills no gaps.
    fine = schema.scaled_resolution < CONTINUOUS_FLOOR
    distinct = np.array([column.n_distinct for column in schema.rounding])
    suspects = [place for place in np.flatnonzero(fine) if distinct[place] > 1]
    suspects = [place for place in suspects if distinct[place] <= MOST_DISTINCT * n_rows[place]]
    suspects = [place for place in suspects if not isinstance(schema.kinds[place], CategoryColumn)]
    # Repeated whole numbers are counts or amounts: spikes are what they are.
    whole = [column.complete and column.decimals == 0 for column in schema.rounding]
    suspects = [place for place in suspects if not whole[place]]
    return sorted(map(int, suspects), key=lambda place: int(distinct[place]))[:COLUMNS]
