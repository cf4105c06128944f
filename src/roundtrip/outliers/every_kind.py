"""`EveryKind`: one score for rows outside of the data, in its holes and against its dependences."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import pandas as pd
import torch

from roundtrip.io.model_file import check_finite
from roundtrip.io.saved import FileParts
from roundtrip.outliers.blurred import BlurredDensity
from roundtrip.outliers.columns import GaussianColumns
from roundtrip.outliers.explanation import Explanation
from roundtrip.outliers.gaussians import Gaussians
from roundtrip.outliers.kinds import kinds_of_rows
from roundtrip.outliers.neighbours import MOST_ROWS, Neighbours
from roundtrip.outliers.robust_columns import RobustColumns, bent, unbent
from roundtrip.outliers.tails import Tails
from roundtrip.outliers.trimming import SIGMA, WideView

PARTS = ("wide", "neighbours", "density", "cells", "local cells")
"""Columns of `EveryKind.lengths`."""

WEIGHTS = np.array([0.15, 1.0, 0.7, 0.0, 0.5])
FAR = np.array([3.0, 7.5, np.inf, 20.0, np.inf])
FAR_WEIGHTS = np.array([3.0, 3.0, 0.0, 3.0, 0.0])
MOST_FAR = np.array([np.inf, 3.0, np.inf, 10.0, np.inf])
"""Weights of the lengths, and of what they exceed `FAR` by, up to `MOST_FAR`: whether a row lies at
the centre or at the rim of the data says little, but one farther outside than nineteen of twenty
is odd, and so is one without neighbours, or with a cell that the others all but exclude. One choice
for all tables (docs/outliers.md)."""

BEND, CELL_BEND = 10.0, 5.0
"""Robust units beyond which values grow logarithmically for the density, and for cells given the
others: an error of a thousand units would decide what is usual."""

CELL_NOISE = 0.03
"""Variance of the noise, in robust units, under which cells are compared with the others."""

USUAL_SHARE = 0.9
"""Share of values that an explanation calls usual."""

FEWEST_FOR_FOLDS = 20


@dataclass(frozen=True)
class EveryKind:
    """Scores rows by five oddities, each relative to the rows of `fit`.

    They are: minus the log density under wide noise; the log distance to the nearest rows; minus
    the log density with its own noise; and the largest surprise of a cell given the others, under
    a single Gaussian and under the density.

    Attributes
    ----------
    wide : WideView
        The density under wide noise.
    columns : RobustColumns
        Units of all that follows.
    neighbours : Neighbours
        Rows to measure distances to.
    gaussians : Gaussians
        The density with its own noise.
    one_gaussian : Gaussians
        A density with a single component, in which a few bad cells have no component of their own;
        it compares cells with the others.
    cell_tails : Tails
        Tails of the surprises of cells, under either density one per feature.
    tails : Tails
        Tails of the five oddities.
    usual : numpy.ndarray
        `(1 + 2 * features,)`, medians of the surprise of rows and cells.
    """

    wide: WideView
    columns: RobustColumns
    neighbours: Neighbours
    gaussians: Gaussians
    one_gaussian: Gaussians
    cell_tails: Tails
    tails: Tails
    usual: np.ndarray

    @classmethod
    def fit(cls, rows: np.ndarray, *, seed: int) -> Self:
        """Fit to `(rows, features)` in random order.

        The tails are those of rows that the parts have not seen: every row is compared with its
        neighbours but itself, and densities of either half are fitted to the other.
        """
        columns = RobustColumns.fit(rows)
        values = columns.apply(rows)
        wide, neighbours = WideView.of(rows), Neighbours(values[:MOST_ROWS])
        densities = _densities(values, seed)
        if len(rows) < FEWEST_FOR_FOLDS:
            unseen = _surprises(densities, values)
        else:
            unseen = np.empty((len(rows), 1 + 2 * rows.shape[1]))
            for place in (0, 1):
                other = _densities(values[1 - place :: 2], seed)
                unseen[place::2] = _surprises(other, values[place::2])
        cell_tails = Tails.fit(unseen[:, 1:])
        oddities = np.column_stack([
            -wide.log_density(rows),
            neighbours.log_distances(values),
            unseen[:, 0],
            *_longest(cell_tails, unseen),
        ])  # fmt: skip
        usual = np.median(unseen, axis=0)
        tails = Tails.fit(oddities)
        return cls(wide, columns, neighbours, *densities, cell_tails, tails, usual)

    takes_any_kind = False
    """Whether rows may have categories, dates or missing cells."""

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Minus the weighted sum of the lengths of `(rows, features)`, `(rows,)`."""
        lengths = self.lengths(rows)
        return -lengths @ WEIGHTS - np.clip(lengths - FAR, 0, MOST_FAR) @ FAR_WEIGHTS

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Return how far out rows lie in the tail of each of `PARTS`, `(rows, 5)`."""
        values = self.columns.apply(rows)
        surprises = _surprises((self.gaussians, self.one_gaussian), values)
        oddities = np.column_stack([
            -self.wide.log_density(rows),
            self.neighbours.log_distances(values),
            surprises[:, 0],
            *_longest(self.cell_tails, surprises),
        ])  # fmt: skip
        return self.tails.lengths(oddities)

    def explain(
        self, rows: np.ndarray, features: Sequence[str], index: pd.Index | None = None
    ) -> Explanation:
        """Explain scores of `(rows, features)`."""
        values = self.columns.apply(rows)
        surprises = _surprises((self.gaussians, self.one_gaussian), values)
        ranges = self.one_gaussian.ranges(bent(values, CELL_BEND), USUAL_SHARE)
        low, high = (self.columns.invert(unbent(each, CELL_BEND)) for each in ranges)
        return Explanation(
            surprise=surprises[:, 0] - self.usual[0],
            given_others=(surprises - self.usual)[:, 1 : 1 + len(features)],
            features=tuple(features),
            index=index,
            kind=kinds_of_rows(self.lengths(rows), self.wide.columns.apply(rows)),
            values=rows,
            usual_low=low,
            usual_high=high,
        )

    def file_parts(self) -> FileParts:
        """Content and tensors of a file."""
        arrays = {"usual": self.usual, "wide_centres": self.wide.blurred.centres.numpy()}
        for name, part in self._array_parts().items():
            arrays |= {f"{name}_{key}": getattr(part, key) for key in _arrays_of(type(part))}
        tensors = {key: torch.from_numpy(np.ascontiguousarray(a)) for key, a in arrays.items()}
        return FileParts({"of": "every kind"}, tensors)

    @classmethod
    def from_file_parts(cls, parts: FileParts) -> Self:
        """Restore a scorer from its `file_parts`."""
        check_finite("scorer", parts.tensors)
        arrays = {key: each.numpy() for key, each in parts.tensors.items()}

        def part(name: str, kind: type) -> Any:
            return kind(**{key: arrays[f"{name}_{key}"] for key in _arrays_of(kind)})

        centres = BlurredDensity(torch.from_numpy(arrays["wide_centres"]), SIGMA)
        restored = {name: part(name, kind) for name, kind in ARRAY_PARTS.items()}
        return cls(wide=WideView(restored.pop("wide"), centres), usual=arrays["usual"], **restored)

    def _array_parts(self) -> dict[str, Any]:
        return {
            name: self.wide.columns if name == "wide" else getattr(self, name)
            for name in ARRAY_PARTS
        }


ARRAY_PARTS: dict[str, type] = {
    "wide": GaussianColumns,
    "columns": RobustColumns,
    "neighbours": Neighbours,
    "gaussians": Gaussians,
    "one_gaussian": Gaussians,
    "cell_tails": Tails,
    "tails": Tails,
}
"""Parts that are all arrays, in a file."""


def _arrays_of(kind: type) -> list[str]:
    return [item.name for item in fields(kind)]


def _densities(values: np.ndarray, seed: int) -> tuple[Gaussians, Gaussians]:
    """Fit both densities to values in robust units."""
    cells = Gaussians.fit(bent(values, CELL_BEND), seed, noise=CELL_NOISE, components=1)
    return Gaussians.fit(bent(values, BEND), seed), cells


def _surprises(densities: tuple[Gaussians, Gaussians], values: np.ndarray) -> np.ndarray:
    """Surprise of rows, then of cells under one Gaussian, then under the density."""
    of_rows, of_cells = densities
    inner = bent(values, BEND)
    return np.column_stack([
        -of_rows.log_density(inner),
        of_cells.given_others(bent(values, CELL_BEND)),
        of_rows.given_others(inner),
    ])  # fmt: skip


def _longest(cell_tails: Tails, surprises: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Length of the longest tail of a cell, `(rows,)`, under one Gaussian and the density."""
    lengths = cell_tails.lengths(surprises[:, 1:])
    features = lengths.shape[1] // 2
    return lengths[:, :features].max(axis=1), lengths[:, features:].max(axis=1)
