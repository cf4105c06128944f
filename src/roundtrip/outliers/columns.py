"""Columns made Gaussian by their ranks, so that units, skewness and long tails do not matter."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.stats import norm

KNOTS = 512
EDGE = 0.02
"""Share of the rows at either end of a column whose ranks are not used, as outliers may be among
them; the map is extrapolated linearly there."""

OUTER = 0.6
"""Length, in standard deviations, of the outer piece of the map whose slope is extrapolated."""

STEEPEST = 3.0
"""Largest slope of the extrapolation, relative to 1 / (standard deviation of the part in use)."""

BEND, SOFTNESS = 2.0, 0.5
"""Scores beyond `BEND` standard deviations grow logarithmically: extreme values keep their order,
but no single column dominates."""

JUMP, ALIKE = 200.0, 1e-6
"""Score, before compression (to 5 standard deviations), of a new value in a column that was
constant; values within a relative difference of `ALIKE` are not new."""

LARGEST = 1e300
"""Bound on scores before compression, to avoid overflow."""


@dataclass(frozen=True)
class GaussianColumns:
    """x_j ↦ Φ⁻¹(rank of x_j), with compressed tails; monotone, column by column.

    Attributes
    ----------
    values, scores : numpy.ndarray
        `(features, knots)`, values of x and the scores they map to; in columns with fewer knots
        the last one is repeated.
    slopes : numpy.ndarray
        `(features, 2)`, below the first and above the last knot.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.exp(np.random.default_rng(0).normal(size=(5000, 1)))
    >>> GaussianColumns.fit(X).apply(np.exp([[-1.0], [0.0], [1.0]])).round(1).ravel() + 0.0
    array([-1.,  0.,  1.])
    """

    values: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, edge: float = EDGE) -> Self:
        """Fit the map that makes each column of `X` standard normal.

        Parameters
        ----------
        X : numpy.ndarray
            `(rows, features)`.
        edge : float, default=0.02
            Share of the rows at either end whose ranks are not used.
        """
        values, scores, slopes = zip(*(_fit_column(column, edge) for column in X.T), strict=True)
        longest = max(map(len, values))

        def padded(knots: np.ndarray) -> np.ndarray:
            return np.pad(knots, (0, longest - len(knots)), mode="edge")

        return cls(
            np.stack([padded(each) for each in values]),
            np.stack([padded(each) for each in scores]),
            np.array(slopes),
        )

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Map `(rows, features)` from the user's units to Gaussian ones."""
        columns = []
        for column, values, scores, (below, above) in zip(
            X.T, self.values, self.scores, self.slopes, strict=True
        ):
            inside = np.interp(column, values, scores)
            with np.errstate(over="ignore"):
                beyond = above * np.clip(column - values[-1], 0, LARGEST)
                short = below * np.clip(column - values[0], -LARGEST, 0)
            columns.append(_compressed(np.clip(inside + beyond + short, -LARGEST, LARGEST)))
        return np.stack(columns, axis=1)


def _compressed(scores: np.ndarray) -> np.ndarray:
    excess = np.maximum(np.abs(scores) - BEND, 0.0)
    return np.clip(scores, -BEND, BEND) + np.sign(scores) * SOFTNESS * np.log1p(excess / SOFTNESS)


def _fit_column(
    column: np.ndarray, edge: float
) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Values and scores of the knots of one column, and the slopes below and above them."""
    values, counts = np.unique(column, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(column)
    trusted = (ranks >= edge) & (ranks <= 1 - edge)
    if trusted.sum() >= 2:
        values, ranks = values[trusted], ranks[trusted]
    if len(values) > KNOTS:
        chosen = np.linspace(0, len(values) - 1, KNOTS).round().astype(int)
        values, ranks = values[chosen], ranks[chosen]
    scores = norm.ppf(ranks)
    if len(values) == 1:  # constant: any other value is an outlier
        size = abs(values[0]) or 1.0
        ends = np.array([-2, -1, 1, 2]) * ALIKE * size
        return values + ends, np.array([-JUMP, 0, 0, JUMP]), (STEEPEST / size, STEEPEST / size)
    spread = np.clip(column, values[0], values[-1]).std()

    def slope(inner: int, outer: int) -> float:
        return float((scores[outer] - scores[inner]) / (values[outer] - values[inner]))

    last = len(values) - 1
    below = slope(0, max(1, int(np.searchsorted(scores, scores[0] + OUTER)) - 1))
    above = slope(min(last - 1, int(np.searchsorted(scores, scores[-1] - OUTER))), last)
    return values, scores, (min(below, STEEPEST / spread), min(above, STEEPEST / spread))
