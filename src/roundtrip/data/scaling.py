"""Scaling of tables: an affine map of each column that remembers its log|det|."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.preprocessing import StandardScaler

SCALES = ("standard", "minmax", None)


@dataclass(frozen=True)
class Scaling:
    """x ↦ (x - shift) / scale, column by column.

    >>> import numpy as np
    >>> scaling = Scaling.fit(np.array([[0.0], [4.0]]), "minmax")
    >>> scaling.apply(np.array([[1.0]])), scaling.log_det
    (array([[0.25]]), -1.3862943611198906)
    """

    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, kind: str | None) -> Self:
        """The scaling of kind "standard" (mean 0, variance 1), "minmax" ([0, 1]) or None.

        A constant column is only shifted: it has no width to divide by.
        """
        if kind not in SCALES:
            raise ValueError(f"scale must be 'standard', 'minmax' or None, got {kind!r}")
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # refused below
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
        """log|det| of the map: what a log density in scaled units gains in the user's units."""
        return -float(np.log(self.scale).sum())

    def apply(self, X: np.ndarray) -> np.ndarray:
        """User's units to scaled units."""
        return (X - self.shift) / self.scale

    def undo(self, X: np.ndarray) -> np.ndarray:
        """Scaled units to user's units."""
        return X * self.scale + self.shift
