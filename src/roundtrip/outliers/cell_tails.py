"""`CellTails`: scores of rows by their most surprising cell, for tables of any kind of columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

TAIL_START, TAIL_END = 0.9, 0.99
"""Quantiles of usual surprises between which their tail is measured; outliers may lie beyond."""

SMALLEST_SCALE = 1.0
"""Nats. If the density is right, a cell as improbable as e^-s occurs about as often, so that the
tail of surprises is at least so long; where a column follows from others it looks shorter."""


@dataclass(frozen=True)
class CellTails:
    """Tails of the surprises of usual rows: of the whole row, then of each cell given the others.

    Attributes
    ----------
    start, scale : numpy.ndarray
        `(1 + features,)`, where each tail starts, and its mean length beyond.

    Examples
    --------
    >>> usual = np.random.default_rng(0).exponential(size=(5000, 2))
    >>> tails = CellTails.fit(usual)
    >>> tails.scores(np.array([[0.0, 1.0], [0.0, 9.0]])).round().tolist()
    [1.0, -7.0]
    """

    start: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, surprises: np.ndarray) -> Self:
        """Measure the tails of `(rows, 1 + features)` surprises, NaN for missing cells."""
        empty = np.isnan(surprises).all(axis=0)
        known = np.where(empty, 0.0, surprises)
        start, end = np.nanquantile(known, [TAIL_START, TAIL_END], axis=0)
        excess = np.nansum(np.clip(known, start, end) - start, axis=0)
        scale = excess / np.maximum((known > start).sum(axis=0), 1)
        return cls(start, np.maximum(scale, SMALLEST_SCALE))

    def lengths(self, surprises: np.ndarray) -> np.ndarray:
        """Return how far surprises lie in their tails, in units of the tails."""
        return (surprises - self.start) / self.scale

    def scores(self, surprises: np.ndarray) -> np.ndarray:
        """Return minus the largest of the lengths of each row, `(rows,)`; low for outliers."""
        lengths = self.lengths(surprises)
        return -np.where(np.isnan(lengths), -np.inf, lengths).max(axis=1)
