"""`Neighbours`: the distance of rows to the nearest rows of `fit`."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.neighbors import NearestNeighbors

COUNT = 10
"""Number of neighbours whose distances are averaged."""

MOST_ROWS = 10_000
"""Rows of `fit` that others are compared with, at most."""

SMALLEST = 1e-3
"""Added to distances before the logarithm, in robust units: equal rows have distance 0."""


@dataclass(frozen=True)
class Neighbours:
    """Logarithm of the mean distance to the ten nearest of the given rows.

    Of a row that is itself among the given rows, that one is left out, so that rows of `fit` and
    new ones are compared with the same number of others.

    Attributes
    ----------
    rows : numpy.ndarray
        `(given rows, features)`.

    Examples
    --------
    >>> near = Neighbours(np.random.default_rng(0).normal(size=(200, 2)))
    >>> bool(np.diff(near.log_distances(np.array([[0.0, 0.0], [4.0, 4.0]])))[0] > 1)
    True
    """

    rows: np.ndarray

    def log_distances(self, rows: np.ndarray) -> np.ndarray:
        """Return the log mean distances of `(rows, features)`, `(rows,)`."""
        count = min(COUNT, len(self.rows) - 1)
        distances, _ = self._index.kneighbors(rows, n_neighbors=count + 1)
        itself = distances[:, 0] == 0
        mean = np.where(itself, distances[:, 1:].mean(axis=1), distances[:, :-1].mean(axis=1))
        return np.log(mean + SMALLEST)

    @cached_property
    def _index(self) -> NearestNeighbors:
        return NearestNeighbors().fit(self.rows)
