"""The kind of each column, inferred from its type and its cells, or as the user says."""

import datetime
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from roundtrip.data.kinds import (
    KINDS,
    Column,
    NumberColumn,
    TimeColumn,
    as_dates,
    as_durations,
    category,
    numbers_of,
    shown,
)

MOST_LEVELS_PER_ROW, FEW_LEVELS = 0.5, 20
"""Text with more distinct values per row than this names the rows; a few levels are always fine."""

MOST_LEVELS = 5_000
"""Largest number of levels: the generator has an output for each."""

DATES = (datetime.date, pd.Timestamp, np.datetime64)
DURATIONS = (datetime.timedelta, pd.Timedelta, np.timedelta64)

Override = str | Sequence[Any]
"""A kind, or the levels of an ordered category in their order."""


def check_overrides(columns: Any) -> None:
    """Raise an error unless `columns` maps labels of columns to kinds or ordered levels."""
    if columns is None:
        return
    if not isinstance(columns, Mapping):
        raise TypeError(
            "columns must map columns to kinds, as in {'zip': 'category'}, got "
            f"{type(columns).__name__}"
        )
    for label, kind in columns.items():
        levels = isinstance(kind, Sequence) and not isinstance(kind, str)
        if not levels and kind not in KINDS:
            raise ValueError(
                f"columns[{label!r}] must be one of {', '.join(map(repr, KINDS))}, or a list of "
                f"levels in their order, got {kind!r}"
            )
        if levels and (len(kind) < 2 or len(set(map(repr, kind))) < len(kind)):
            raise ValueError(f"columns[{label!r}] needs two or more different levels, got {kind!r}")


def inferred(cells: pd.Series, override: Override | None = None) -> Column:
    """Return the kind of a column.

    Parameters
    ----------
    cells : Series
        The cells of fit.
    override : str or sequence, default=None
        The kind that the user gives, or the levels of an ordered category in their order.

    Returns
    -------
    Column
        The column with its levels.

    Raises
    ------
    ValueError
        If the cells are of no kind or of several; the message does not name the column.

    Examples
    --------
    >>> inferred(pd.Series(["a", "b", None])).kind, inferred(pd.Series([1.5, 2.0])).kind
    ('category', 'number')
    >>> str(inferred(pd.Series([3, 1, 2]), "ordered"))
    'ordered category of 3 levels: 1, 2, 3'
    """
    known = cells[cells.notna()]
    if len(known) == 0:
        raise ValueError("all its cells are missing; drop it")
    dtype = str(cells.dtype)
    if override is None:
        override = _kind_of(known)
    if override == "number":
        numbers_of(_read_numbers(cells) if _is_text(known) else cells)
        return NumberColumn("float64" if _is_text(known) or dtype == "object" else dtype)
    if override == "date":
        dates = as_dates(cells)
        zone = getattr(dates.dt, "tz", None)
        has_type = pd.api.types.is_datetime64_any_dtype(cells.dtype)
        return TimeColumn(dtype if has_type else str(dates.dtype), None if zone is None else str(zone))
    if override == "duration":
        durations = as_durations(cells)
        has_type = pd.api.types.is_timedelta64_dtype(cells.dtype)
        return TimeColumn(dtype if has_type else str(durations.dtype), None)
    return _category(cells, known, dtype, override)


def _category(
    cells: pd.Series, known: pd.Series, dtype: str, override: Override
) -> Column:
    """Return a category, whose levels have an order or not."""
    given: list[Any] | None = None
    ordered = override != "category"
    if not isinstance(override, str):
        given = list(override)
    elif isinstance(cells.dtype, pd.CategoricalDtype):
        if ordered and not cells.dtype.ordered:
            raise ValueError(
                "its categories have no order: give the levels in their order, as in "
                f"columns={{{cells.name!r}: [...]}}"
            )
        given = list(cells.dtype.categories) if ordered else None
    elif ordered and _is_text(known):
        raise ValueError(
            "text has no order of its own: give the levels in their order, as in "
            f"columns={{{cells.name!r}: [...]}}"
        )
    elif ordered:
        given = sorted(known.astype(object).unique())
    elif pd.api.types.is_bool_dtype(known.dtype) or set(known.astype(object)) <= {True, False}:
        given = [False, True] if _all(known.astype(object), bool | np.bool_) else None
    distinct = known.astype(object).nunique()
    if distinct > MOST_LEVELS_PER_ROW * len(known) and distinct > FEW_LEVELS:
        raise ValueError(
            f"it has {distinct} different values in {len(known)} rows, such as "
            f"{shown(known.iloc[0])}, and seems to name the rows; drop it. If these are numbers "
            "or dates, convert them, as with pandas.to_numeric or columns={...: 'date'}"
        )
    if distinct > MOST_LEVELS:
        raise ValueError(
            f"it has {distinct} levels, more than {MOST_LEVELS}; join rare ones, or drop it"
        )
    return category(cells, dtype, given, ordered=ordered)


def _kind_of(known: pd.Series) -> str:
    """Return the kind of cells that are not missing."""
    dtype = known.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "category"
    if pd.api.types.is_bool_dtype(dtype):
        return "category"
    if pd.api.types.is_complex_dtype(dtype):
        raise ValueError("it holds complex numbers; split them into two columns")
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "date"
    if pd.api.types.is_timedelta64_dtype(dtype):
        return "duration"
    if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype):
        raise ValueError(f"its type {dtype} is not supported; convert it to dates, numbers or text")
    kinds: dict[str, Hashable] = {}
    for label, value in known.astype(object).items():
        kinds.setdefault(_kind_of_cell(value, label), label)
    if len(kinds) > 1:
        cells = ", ".join(f"{shown(known[row])} in row {row}" for row in kinds.values())
        raise ValueError(f"it mixes kinds of cells: {cells}; convert them to one kind")
    return next(iter(kinds))


def _kind_of_cell(value: Any, label: Any) -> str:
    if isinstance(value, str | bool | np.bool_):
        return "category"
    if isinstance(value, Real | Decimal):
        return "number"
    if isinstance(value, DATES):
        return "date"
    if isinstance(value, DURATIONS):
        return "duration"
    raise ValueError(
        f"row {label} has {shown(value)}, a {type(value).__name__}; cells are numbers, text, "
        "booleans, dates or durations"
    )


def _is_text(known: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(known.dtype) and _all(known.astype(object), str)


def _all(values: Any, kind: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def _read_numbers(cells: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(cells, errors="coerce")
    bad = numbers.isna() & cells.notna()
    if bad.any():
        raise ValueError(f"row {bad.idxmax()} has {shown(cells[bad].iloc[0])}, which is no number")
    return numbers
