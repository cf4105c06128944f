"""Clear outliers among training rows: those that lie outside of the others, clusters included."""

from dataclasses import dataclass

import numpy as np
import torch

from roundtrip.outliers.blurred import BlurredDensity
from roundtrip.outliers.columns import EDGE, GaussianColumns
from roundtrip.outliers.conformal import fence

SIGMA = 4.0
"""Noise so wide that a cluster of outliers adds little to the density (docs/outliers.md)."""

FIRST_EDGE = 0.15
"""Share of the rows at either end of a column whose ranks are not used before the first trimming,
when many outliers may be at one end."""

TRIMMINGS = 3
CENTRES = 1024
"""Rows that stand for the others under the noise, at most."""


@dataclass(frozen=True)
class WideView:
    """Rows seen under wide noise: how far outside they lie.

    Attributes
    ----------
    columns : GaussianColumns
        Map of the columns.
    blurred : BlurredDensity
        Rows of `fit`, blurred.
    """

    columns: GaussianColumns
    blurred: BlurredDensity

    @classmethod
    def of(cls, rows: np.ndarray, edge: float = EDGE) -> "WideView":
        """Blur `(rows, features)`, which are in random order."""
        columns = GaussianColumns.fit(rows, edge)
        centres = torch.as_tensor(columns.apply(rows[:CENTRES]))
        return cls(columns, BlurredDensity(centres, SIGMA))

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """Log density of `(rows, features)` under the noise, `(rows,)`."""
        return self.blurred.log_density(torch.as_tensor(self.columns.apply(rows)))


def clear_outliers(rows: np.ndarray) -> np.ndarray:
    """Mark rows far below the others under wide noise, `(rows,)` of bool.

    >>> rows = np.random.default_rng(0).normal(size=(500, 2))
    >>> rows[:20] = 9 + 0.01 * rows[:20]
    >>> np.flatnonzero(clear_outliers(rows))[:20].tolist() == list(range(20))
    True
    """
    outlier = np.zeros(len(rows), dtype=bool)
    for trimming in range(TRIMMINGS):
        view = WideView.of(rows[~outlier], EDGE if trimming else FIRST_EDGE)
        scores = view.log_density(rows)
        before, outlier = outlier, scores < fence(scores)
        if trimming and (outlier == before).all():
            break
    return outlier
