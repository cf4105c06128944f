"""Scaling of tables: an affine map of each column, with its log|det|."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from roundtrip.data.rounding import is_constant

SCALES = ("standard", "minmax", None)


@dataclass(frozen=True)
class Scaling:
    """The map x ↦ (x - shift) / scale, column by column.

    Attributes
    ----------
    shift : numpy.ndarray
        `(features,)` in the user's units.
    scale : numpy.ndarray
        `(features,)` positive, in the user's units.

    Examples
    --------
    >>> import numpy as np
    >>> scaling = Scaling.fit(np.array([[0.0], [4.0]]), "minmax")
    >>> scaling.apply(np.array([[1.0]])), scaling.log_det
    (array([[0.25]]), -1.3862943611198906)
    """

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, kind: str | None, *, labels: Sequence[Any] | None = None) -> Self:
        """Return the scaling of a table.

        Parameters
        ----------
        X : numpy.ndarray of shape (rows, features)
            The table.
        kind : {"standard", "minmax"} or None
            To mean 0 and variance 1, to [0, 1], or not at all. A constant column is only shifted,
            because it has no width to divide by.
        labels : sequence or None, default=None
            Labels of the columns, for messages; None for their numbers.

        Returns
        -------
        Scaling
            The scaling.
        """
        if kind not in SCALES:
            raise ValueError(f"scale must be 'standard', 'minmax' or None, got {kind!r}")
        # Overflows need no warning: the check below refuses their results.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            low, high = X.min(axis=0), X.max(axis=0)
            constant = [is_constant(*ends) for ends in zip(low, high, strict=True)]
            width = np.where(constant, 1.0, high - low)
            if kind == "standard":
                # Relative to a row and to the width, so that neither a large offset with a small
                # spread nor a very small or large unit costs digits.
                relative = (X - X[0]) / width
                mean = relative.mean(axis=0)
                spread = np.sqrt(np.square(relative - mean).mean(axis=0))
                shift, scale = X[0] + width * mean, width * np.where(constant, 1.0, spread)
            elif kind == "minmax":
                shift, scale = low, width
            else:
                shift, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        bad = ~(np.isfinite(shift) & np.isfinite(scale) & (scale > 0))
        if bad.any():
            named = list(range(X.shape[1]) if labels is None else labels)
            listed = [named[place] for place in np.flatnonzero(bad)]
            raise ValueError(
                f"columns {listed} span a range too wide or too narrow for float64; rescale them"
            )
        return cls(shift, scale)

    @property
    def log_det(self) -> float:
        """log|det| of the map; adding it converts log densities to the user's units."""
        return -float(np.log(self.scale).sum())

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Convert from the user's units to scaled units."""
        return (X - self.shift) / self.scale

    def undo(self, X: np.ndarray) -> np.ndarray:
        """Convert from scaled units to the user's units."""
        return X * self.scale + self.shift
