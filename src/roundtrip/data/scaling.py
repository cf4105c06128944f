"""Scaling of tables: an affine map of each column, with its log|det|."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.preprocessing import StandardScaler

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
    def fit(cls, X: np.ndarray, kind: str | None) -> Self:
        """Return the scaling of a table.

        Parameters
        ----------
        X : numpy.ndarray of shape (rows, features)
            The table.
        kind : {"standard", "minmax"} or None
            To mean 0 and variance 1, to [0, 1], or not at all. A constant column is only shifted,
            because it has no width to divide by.

        Returns
        -------
        Scaling
            The scaling.
        """
        if kind not in SCALES:
            raise ValueError(f"scale must be 'standard', 'minmax' or None, got {kind!r}")
        # Overflows need no warning: the check below refuses their results.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if kind == "standard":
                standard = StandardScaler().fit(X)
                shift, scale = standard.mean_, standard.scale_
            elif kind == "minmax":
                shift, width = X.min(axis=0), np.ptp(X, axis=0)
                scale = np.where(width > 0, width, 1.0)
            else:
                shift, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        bad = ~(np.isfinite(shift) & np.isfinite(scale) & (scale > 0))
        if bad.any():
            raise ValueError(
                f"columns {np.flatnonzero(bad).tolist()} span a range too wide or too narrow for "
                "float64; rescale them"
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
