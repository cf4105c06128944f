"""`Tails`: how far out numbers lie among those of usual rows, on one scale for all of them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

LEVELS = np.linspace(0.0, 0.8, 33)
"""Below the last of these quantiles a length follows from ranks; beyond it from a mean excess."""

END = 0.98
"""Quantile up to which the mean excess is measured; outliers may lie beyond."""

SMALLEST_SCALE = 0.02


@dataclass(frozen=True)
class Tails:
    """Lengths -log(share of usual rows that are at least as odd), one column per oddity.

    Beyond the usual rows the lengths go on as those of an exponential distribution.

    Attributes
    ----------
    knots : numpy.ndarray
        `(levels, columns)`, quantiles of usual rows.
    scale : numpy.ndarray
        `(columns,)`, mean length of the tail.

    Examples
    --------
    >>> usual = np.random.default_rng(0).exponential(size=(5000, 1))
    >>> Tails.fit(usual).lengths(np.array([[0.0], [1.0], [9.0]])).round().ravel().tolist()
    [0.0, 1.0, 9.0]
    """

    knots: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, usual: np.ndarray) -> Self:
        """Measure the tails of `(rows, columns)`; large is odd."""
        knots = np.quantile(usual, LEVELS, axis=0)
        start, end = knots[-1], np.quantile(usual, END, axis=0)
        beyond = np.maximum((usual > start).sum(axis=0), 1)
        scale = (np.clip(usual, start, end) - start).sum(axis=0) / beyond
        return cls(knots, np.maximum(scale, SMALLEST_SCALE))

    def lengths(self, values: np.ndarray) -> np.ndarray:
        """Return the lengths of `(rows, columns)`, at least 0."""
        start = self.knots[-1]
        beyond = (values - start) / self.scale - np.log(1 - LEVELS[-1])
        ranks = [
            np.interp(column, knots, LEVELS)
            for column, knots in zip(values.T, self.knots.T, strict=True)
        ]
        return np.where(values > start, beyond, -np.log1p(-np.stack(ranks, axis=1)))
