"""Marginals of one and two columns on bins and levels, for pictures.

Given z the columns are independent, so that the probability of a pair of bins is the average over
draws of z of the product of two probabilities. No row is scored, and all pairs share the draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Schema
from roundtrip.data.bins import bin_edges
from roundtrip.data.kinds import CategoryColumn
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.fitted import FittedDensity
from roundtrip.model.noise.limited import log_levels
from roundtrip.parameters import named_seed

DRAWS, DRAWS_AT_ONCE = 16_384, 1024

MOST_BINS = 48


@dataclass(frozen=True)
class ColumnMasses:
    """Probabilities of the bins or levels of one column given each of many draws of z.

    Attributes
    ----------
    place : int
        Place of the column.
    edges : numpy.ndarray or None
        Edges of the bins in the user's units, `(bins + 1,)`; None for categories.
    given_z : Tensor
        Probabilities, `(draws, bins or levels)`.
    """

    place: int
    edges: np.ndarray | None
    given_z: Tensor

    @cached_property
    def masses(self) -> np.ndarray:
        """Probabilities of the bins or levels."""
        return self.given_z.mean(dim=0).cpu().numpy()

    def with_other(self, other: "ColumnMasses") -> np.ndarray:
        """Return the probabilities of pairs, `(own bins, bins of the other column)`."""
        return (self.given_z.T @ other.given_z / len(self.given_z)).cpu().numpy()


@torch.no_grad()
def column_masses(
    fitted: FittedDensity, values: np.ndarray, places: Sequence[int]
) -> list[ColumnMasses]:
    """Return the probabilities of bins and levels of some columns.

    Parameters
    ----------
    fitted : FittedDensity
        Density of a table without a context.
    values : numpy.ndarray of shape (rows, columns)
        Rows in the user's units, whose range the bins cover.
    places : sequence of int
        Places of the columns.

    Returns
    -------
    list of ColumnMasses
        One for each column.
    """
    model, schema = fitted.prepared.of_parts.model, fitted.schema
    rng = np.random.RandomState(named_seed(fitted.seed, "pair marginals") % 2**32)
    outputs = map_blocks(model.outputs_of, model.sample_codes(DRAWS, rng), EVALUATIONS_PER_CALL)
    found = []
    for place in places:
        one, needed = model.noise.factor(place)
        edges = _edges(schema, place, values[:, place])
        x = None
        if edges is not None:
            scaling = schema.scaling
            x = torch.from_numpy((edges - scaling.shift[place]) / scaling.scale[place])
            x = x.to(model.device)[None, :, None]
        parts = []
        for block in outputs[:, needed].split(DRAWS_AT_ONCE):
            if x is None:
                parts.append(log_levels(one, block.double()).exp())
            else:
                parts.append(one.cdf(block.double()[:, None], x)[..., 0].diff(dim=1))
        found.append(ColumnMasses(place, edges, torch.cat(parts)))
    return found


def _edges(schema: Schema, place: int, values: np.ndarray) -> np.ndarray | None:
    if isinstance(schema.kinds[place], CategoryColumn):
        return None
    known = values[~np.isnan(values)]
    if not len(known):
        raise ValueError(f"column {list(schema.described())[place]!r} has no observed cell")
    low, high = np.quantile(known, [0.002, 0.998], method="nearest")
    if schema.rounding[place].step == 0:
        margin = 0.05 * (high - low)
        low, high = low - margin, high + margin
    return bin_edges(schema.rounding[place], low, high, MOST_BINS)
