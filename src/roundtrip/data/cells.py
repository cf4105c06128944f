"""Single cells of tables: what they hold, and how messages show them."""

import numbers
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

LARGEST_EXACT, FEWEST_VALUES = 2**53, 100_000
"""float64 holds whole numbers up to the first exactly. A range of larger ones, which it rounds,
needs so many different numbers of float64."""

SHOWN_LENGTH = 40
"""Longest text of a cell in a message."""


def shown(value: Any) -> str:
    """Return a cell as text that is not too long.

    Examples
    --------
    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    text = repr(python_value(value))
    return text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "..."


def python_value(value: Any) -> Any:
    """Return a NumPy number as Python's own; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def text_of(label: Any) -> str:
    """Return a label as a user writes it.

    Examples
    --------
    >>> text_of(1.0), text_of("1"), text_of(1.5)
    ('1', '1', '1.5')
    """
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def type_name(value: Any) -> str:
    """Return what a cell that is not missing holds, as messages call it.

    Examples
    --------
    >>> type_name(True), type_name(1.5), type_name("a"), type_name([1])
    ('booleans', 'numbers', 'text', 'list')
    """
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, numbers.Real | Decimal):
        return "numbers"
    return "text" if isinstance(value, str) else type(value).__name__


def is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas.NA."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def check_whole_numbers(values: Any) -> None:
    """Raise `ValueError` for a column of whole numbers so large that float64 can't tell them apart.

    Parameters
    ----------
    values : array-like
        The cells that are not missing. Columns of other numbers are fine.

    Examples
    --------
    >>> check_whole_numbers(np.array([2**60, 2**60 + 10**9]))
    """
    try:
        low, high = np.min(values), np.max(values)
    except (TypeError, ValueError):  # no numbers, or none at all
        return
    if not isinstance(low, numbers.Integral) or not isinstance(high, numbers.Integral):
        return
    low, high = int(low), int(high)
    largest = max(abs(low), abs(high))
    if largest <= LARGEST_EXACT or high - low >= FEWEST_VALUES * np.spacing(float(largest)):
        return
    if any(int(float(value)) != value for value in map(int, values)):
        raise ValueError(
            f"float64 can't tell its whole numbers, from {low} to {high}, apart; subtract a "
            "constant from them, or make them a category"
        )


def numbers_of(cells: pd.Series) -> np.ndarray:
    """Return numbers as float64, NaN for missing cells; raise `ValueError` for anything else.

    Examples
    --------
    >>> numbers_of(pd.Series([1, None, 2.5])).tolist()
    [1.0, nan, 2.5]
    """
    is_arrow = isinstance(cells.dtype, pd.ArrowDtype)
    if cells.dtype.kind in "biuf" and not is_arrow:
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    if cells.dtype.kind in "iuf":
        return np.asarray(cells.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.empty(len(cells))
    for place, value in enumerate(cells.astype(object)):
        if is_missing(value):
            values[place] = np.nan
        elif type_name(value) in ("numbers", "booleans"):
            values[place] = float(value)
        else:
            row = cells.index[place]
            raise ValueError(f"fit had numbers, but row {row} has {shown(value)}")
    return values
