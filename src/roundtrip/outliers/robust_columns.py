"""Columns in robust units: distances and Gaussians are not led by extreme values."""

from dataclasses import dataclass
from typing import Self

import numpy as np

FAR = 100.0
"""Values beyond so many units grow logarithmically, so that squares of any number are finite."""

LARGEST = 1e300

ALIKE = 1e-3
"""Unit of a column that was constant, relative to its value."""


def bent(values: np.ndarray, start: float) -> np.ndarray:
    """Let values grow only logarithmically beyond ±`start`.

    >>> bent(np.array([-1.0, 5.0]), 3.0).round(3).tolist()
    [-1.0, 4.099]
    """
    beyond = np.maximum(np.abs(values) - start, 0.0)
    return np.clip(values, -start, start) + np.sign(values) * np.log1p(beyond)


def unbent(values: np.ndarray, start: float) -> np.ndarray:
    """Invert `bent`.

    >>> unbent(bent(np.array([-1.0, 5.0]), 3.0), 3.0).round(6).tolist()
    [-1.0, 5.0]
    """
    with np.errstate(over="ignore"):
        beyond = np.expm1(np.maximum(np.abs(values) - start, 0.0))
    return np.clip(values, -start, start) + np.sign(values) * beyond


@dataclass(frozen=True)
class RobustColumns:
    """x_j ↦ (x_j - median) / (interquartile range / 1.349), one unit per standard deviation.

    Where the middle half of a column is one value, the range of its middle nine tenths takes the
    place of the quartiles, and where that is one value, too, the standard deviation.

    Attributes
    ----------
    centre, scale : numpy.ndarray
        `(features,)`.

    Examples
    --------
    >>> X = np.arange(101.0)[:, None]
    >>> RobustColumns.fit(X).apply(np.array([[50.0], [100.0]])).round(2).ravel().tolist()
    [0.0, 1.35]
    """

    centre: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray) -> Self:
        """Measure centre and scale of the columns of `(rows, features)`."""
        lowest, lower, centre, upper, highest = np.quantile(
            X, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0
        )
        with np.errstate(over="ignore", invalid="ignore"):
            units = [(upper - lower) / 1.349, (highest - lowest) / 3.29, X.std(axis=0)]
        size = np.abs(centre)
        units.append(ALIKE * np.where(size > 0, size, 1.0))
        # A unit that is tiny beside its values is the last digit of a constant.
        usable = [np.isfinite(unit) & (unit > 1e-12 * size) for unit in units]
        return cls(centre, np.select(usable, units, default=1.0))

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Map `(rows, features)` from the user's units."""
        with np.errstate(over="ignore"):
            values = np.clip((X - self.centre) / self.scale, -LARGEST, LARGEST)
        return bent(values, FAR)

    def invert(self, values: np.ndarray) -> np.ndarray:
        """Map `(..., features)` back to the user's units."""
        return self.centre + self.scale * unbent(values, FAR)
