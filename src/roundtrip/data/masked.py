"""Masked arrays of NumPy, whose masked cells are missing."""

from typing import Any

import numpy as np


def unmasked(X: Any) -> Any:
    """Return a masked array as an array with missing cells; anything else as it is.

    Examples
    --------
    >>> unmasked(np.ma.masked_array([[1, 2]], mask=[[False, True]])).tolist()
    [[1.0, nan]]
    """
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    if X.dtype.kind in "biuf":
        return np.ma.filled(X.astype(np.float64), np.nan)
    nothing = np.array("NaT", X.dtype) if X.dtype.kind in "mM" else None
    cells = X.data.copy() if X.dtype.kind in "mM" else X.data.astype(object)
    cells[np.ma.getmaskarray(X)] = nothing
    return cells


def check_unmasked(name: str, values: Any) -> None:
    """Raise `ValueError` for masked values where none may be missing."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values, but none may be missing; drop the rows")
