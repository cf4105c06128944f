"""The types of the columns of a table, which samples have, too."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMPY = ("bool", *WHOLE, "float16", "float32", "float64")
NULLABLE = ("boolean", *(name.replace("i", "I").replace("u", "U") for name in WHOLE))
KNOWN = (*NUMPY, *NULLABLE, "Float32", "Float64")
OTHER = "float64"
"""Type of samples of columns with any other type, such as objects."""


def column_types(X: Any) -> tuple[str, ...] | None:
    """Return the type of each column of a DataFrame, or of an array.

    Parameters
    ----------
    X : DataFrame, numpy.ndarray or object
        The table.

    Returns
    -------
    tuple of str or None
        Names of types, one for an array; None for lists and other tables.

    Examples
    --------
    >>> column_types(np.zeros((2, 3), dtype=np.float32))
    ('float32',)
    >>> column_types(pd.DataFrame({"a": [1, 2], "b": [True, False]}))
    ('int64', 'bool')
    """
    if isinstance(X, pd.DataFrame):
        found = [str(each) for each in X.dtypes]
    elif isinstance(X, np.ndarray):
        found = [str(X.dtype)]
    else:
        return None
    return tuple(name if name in KNOWN else OTHER for name in found)


def with_types(
    table: np.ndarray | pd.DataFrame,
    types: Sequence[str],
    ranges: Sequence[tuple[float, float]],
) -> np.ndarray | pd.DataFrame:
    """Convert a table of float64 to the types of another table.

    Parameters
    ----------
    table : numpy.ndarray or DataFrame
        The table.
    types : sequence of str
        The types, as `column_types` gives them.
    ranges : sequence of tuple of float
        Smallest and largest value of each column, to which whole numbers are limited.

    Returns
    -------
    numpy.ndarray or DataFrame
        The same table in other types.

    Examples
    --------
    >>> with_types(np.array([[0.7, 4.2]]), ("int64",), [(0, 3), (0, 3)])
    array([[1, 3]])
    """
    if isinstance(table, np.ndarray):
        if types[0] in ("float16", "float32", "float64"):
            return table.astype(types[0])
        low, high = np.array(ranges).T
        return np.clip(np.rint(table), low, high).astype(types[0])
    columns = [
        _column(table.iloc[:, place], *each)
        for place, each in enumerate(zip(types, ranges, strict=True))
    ]
    return pd.concat(columns, axis=1)


def _column(column: pd.Series, name: str, limits: tuple[float, float]) -> pd.Series:
    if name.lower().startswith("float"):
        return column.astype(name)  # type: ignore[call-overload]
    return column.round().clip(*limits).astype(name)  # type: ignore[call-overload]
