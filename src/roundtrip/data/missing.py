"""Missing cells: rows without any observed cell, and features that say which cells are missing."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from roundtrip.data.kinds import CategoryColumn
from roundtrip.data.libraries import as_frame
from roundtrip.data.masked import unmasked

MISSING = ("ignore", "model")
"""What an estimator may do with the pattern of missing cells."""

SHOWN_ROWS = 5
"""Number of rows that a message names."""


def check_columns(cells: Any, values: np.ndarray) -> None:
    """Raise `ValueError` for a column without any observed cell.

    Parameters
    ----------
    cells : DataFrame or object
        The table, for the labels of its columns.
    values : numpy.ndarray of shape (rows, columns)
        Its numbers, NaN for missing cells.
    """
    empty = np.isnan(values).all(axis=0)
    if empty.any():
        place = int(empty.argmax())
        label = cells.columns[place] if isinstance(cells, pd.DataFrame) else place
        raise ValueError(f"column {label!r}: all its cells are missing (NaN); drop it")


def check_rows(cells: Any, values: np.ndarray) -> None:
    """Raise `ValueError` for rows without any observed cell.

    Parameters
    ----------
    cells : DataFrame or object
        The table, for the labels of its rows.
    values : numpy.ndarray of shape (rows, columns)
        Its numbers, NaN for missing cells.
    """
    empty = np.flatnonzero(np.isnan(values).all(axis=1))
    if len(empty):
        index = cells.index if isinstance(cells, pd.DataFrame) else range(len(values))
        listed = ", ".join(str(index[row]) for row in empty[:SHOWN_ROWS])
        more = ", ..." if len(empty) > SHOWN_ROWS else ""
        raise ValueError(
            f"{len(empty)} row{'s have' if len(empty) > 1 else ' has'} no observed cell, all are "
            f"missing (NaN): {listed}{more}; drop {'them' if len(empty) > 1 else 'it'}"
        )


def without_empty_rows(X: Any) -> Any:
    """Return a table without its rows that have no observed cell.

    Tables without any observed cell, and what is no table, stay as they are.

    Parameters
    ----------
    X : DataFrame of any library, array or nested list
        The table.

    Returns
    -------
    object
        A table of the same library, an array for a nested list.

    Examples
    --------
    >>> without_empty_rows(np.array([[1.0, np.nan], [np.nan, np.nan]])).tolist()
    [[1.0, nan]]
    """
    X = unmasked(X)
    _, frame = as_frame(X)
    if frame is None:
        try:
            cells = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
        except ValueError:  # rows of different lengths
            return X
        missing = pd.isna(cells)
    else:
        missing = frame.isna().to_numpy()
    if np.ndim(missing) != 2:
        return X
    kept = np.flatnonzero(~missing.all(axis=1))
    if len(kept) in (0, len(missing)):
        return X
    if frame is None:
        return cells[kept]
    return nw.from_native(X, eager_only=True)[kept.tolist()].to_native()


def with_indicators(values: np.ndarray, indicated: Sequence[int]) -> np.ndarray:
    """Return the values with features at the end that say which cells of some columns are missing.

    Parameters
    ----------
    values : numpy.ndarray of shape (rows, columns)
        Values, NaN for missing cells.
    indicated : sequence of int
        Places of these columns.

    Examples
    --------
    >>> with_indicators(np.array([[1.0, np.nan]]), [1]).tolist()
    [[1.0, nan, 1.0]]
    """
    if not indicated:
        return values
    return np.concatenate([values, np.isnan(values[:, list(indicated)])], axis=1)


def without_indicators(values: np.ndarray, indicated: Sequence[int]) -> np.ndarray:
    """Return the values of the columns, NaN where an indicator says so: undo `with_indicators`.

    Parameters
    ----------
    values : numpy.ndarray of shape (rows, features)
        Values with indicators, which decide.
    indicated : sequence of int
        Places of the columns with indicators.
    """
    if not indicated:
        return values
    columns = values[:, : -len(indicated)].copy()
    for place, missing in zip(indicated, values[:, -len(indicated) :].T, strict=True):
        columns[missing > 0.5, place] = np.nan
    return columns


def indicator_columns(values: np.ndarray, indicated: Sequence[int]) -> tuple[CategoryColumn, ...]:
    """Return the kinds of the indicators."""
    return tuple(CategoryColumn.indicator(float(np.isnan(values[:, j]).mean())) for j in indicated)
