"""Scaling of tables: an affine map of each column that remembers its log|det|."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

SCALES = ("standard", "minmax", None)
MOST_DISTINCT = 0.1
"""Share of distinct values among a column's rows up to which it counts as rounded."""

SMALLEST_GAP = 1e-9


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


def column_resolution(X: np.ndarray) -> np.ndarray:
    """The step in which each column is rounded, 0 for columns that are not; `(features,)`.

    A column counts as rounded when it has few distinct values for its number of rows, as counts,
    codes and coarse measurements do. Its step is the smallest gap between values that are not just
    different by arithmetic error; 1 for a column of one value.

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = np.stack([random.normal(size=500), random.integers(5, size=500) / 10], axis=1)
    >>> column_resolution(X).round(3)
    array([0. , 0.1])
    """
    resolution = np.zeros(X.shape[1])
    for place, column in enumerate(X.T):
        values = np.unique(column)
        if len(values) == 1:
            resolution[place] = 1.0
        elif len(values) <= MOST_DISTINCT * len(column):
            gaps = np.diff(values)
            resolution[place] = gaps[gaps > SMALLEST_GAP * np.ptp(values)].min(initial=np.inf)
    return np.where(np.isfinite(resolution), resolution, 0.0)


def checked_table(estimator: Any, X: Any, **settings: Any) -> np.ndarray:
    """X as scikit-learn wants it, float64; errors say which columns of a DataFrame are bad.

    `settings` are those of scikit-learn's `validate_data`.

    >>> import pandas as pd
    >>> from sklearn.base import BaseEstimator
    >>> checked_table(BaseEstimator(), pd.DataFrame({"a": [1, 2], "b": [3, 4]})).dtype
    dtype('float64')
    """
    if isinstance(X, pd.DataFrame) and X.shape[1] == 0:
        raise ValueError("the table has no columns")
    try:
        return validate_data(estimator, X, dtype=np.float64, order="C", **settings)
    except (ValueError, TypeError) as error:
        culprits = bad_columns(X)
        if not culprits:
            raise
        problem = str(error).partition("\n")[0].rstrip(".")
        if isinstance(error, TypeError):  # of NumPy's types, which is no help
            problem = "not all columns are numbers"
        raise ValueError(
            f"{problem} (in columns {', '.join(culprits)}). Encode or drop columns that are "
            "not numbers, and fill or drop rows with missing or infinite values."
        ) from error


def bad_columns(X: Any) -> list[str]:
    """Names of the columns of a DataFrame that hold text, dates, missing or infinite values.

    >>> import pandas as pd
    >>> bad_columns(pd.DataFrame({"a": [1.0, None], "b": ["x", "y"], "c": [1, 2]}))
    ['a', 'b']
    """
    if not isinstance(X, pd.DataFrame):
        return []
    return [str(name) for name, column in X.items() if not _all_finite(column)]


def _all_finite(column: pd.Series) -> bool:
    if column.dtype.kind in "mM":  # pandas takes dates and durations for numbers
        return False
    return bool(np.isfinite(pd.to_numeric(column, errors="coerce").astype(float)).all())
