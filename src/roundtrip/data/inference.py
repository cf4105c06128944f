"""The kind of each column, inferred from its type and its cells, or as the user says."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from roundtrip.data.cells import check_whole_numbers, numbers_of, python_value, shown, type_name
from roundtrip.data.column_types import number_type
from roundtrip.data.kinds import CategoryColumn, Column, NumberColumn
from roundtrip.data.times import TimeColumn, as_dates, as_durations, zone_of

MOST_LEVELS_PER_ROW, FEW_LEVELS = 0.5, 20
"""Text with more distinct values per row than this names the rows; a few levels are always fine."""

MOST_LEVELS = 5_000
"""Largest number of levels: the generator has an output for each."""

MOST_RESERVED = 0.05
"""Largest probability that is reserved for unseen levels."""

KINDS = ("number", "category", "ordered", "date", "duration")

Override = str | Sequence[Any]
"""A kind, or the levels of an ordered category in their order."""

KIND_OF_CELLS = {
    "string": "category",
    "boolean": "category",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "datetime": "date",
    "datetime64": "date",
    "date": "date",
    "timedelta": "duration",
    "timedelta64": "duration",
}
"""Kinds of the cells of a column of objects, by the names that pandas has for them."""


def check_overrides(columns: Any) -> None:
    """Raise an error unless `columns` maps labels of columns to kinds or ordered levels.

    Examples
    --------
    >>> check_overrides({"zip": "category", "size": ["small", "large"]})
    """
    if columns is None:
        return
    if not isinstance(columns, Mapping):
        raise ValueError(
            "columns must map columns to kinds, as in {'zip': 'category'}, got "
            f"{type(columns).__name__}"
        )
    for label, kind in columns.items():
        levels = isinstance(kind, Sequence | np.ndarray) and not isinstance(kind, str)
        if not levels and (not isinstance(kind, str) or kind not in KINDS):
            raise ValueError(
                f"columns[{label!r}] must be one of {', '.join(map(repr, KINDS))}, or a list of "
                f"levels in their order, got {kind!r}"
            )
        if levels and (len(kind) < 2 or len(set(map(repr, kind))) < len(kind)):
            raise ValueError(f"columns[{label!r}] needs two or more different levels, got {kind!r}")


def reading(columns: Mapping[Any, Override] | None, missing: str) -> dict[str, Any]:
    """Return a copy of what says how tables are read, to compare it with that of another fit.

    Parameters
    ----------
    columns : mapping or None
        Kinds or levels of some columns, by their labels.
    missing : str
        What missing cells are.

    Examples
    --------
    >>> reading({"size": ["small", "large"]}, "ignore")
    {'columns': {'size': ('small', 'large')}, 'missing': 'ignore'}
    """
    kinds = {
        label: kind if isinstance(kind, str) else tuple(map(python_value, kind))
        for label, kind in (columns or {}).items()
    }
    return {"columns": kinds, "missing": missing}


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
    if len(cells) and len(known) == 0:
        raise ValueError("all its cells are missing; drop it")
    dtype = str(cells.dtype)
    kind = _kind_of(known) if override is None else override
    if isinstance(kind, str) and kind == "number":
        if _cells_are(known, "string"):
            raise ValueError(
                f"row {known.index[0]} has the text {shown(known.iloc[0])}; convert the column to "
                "numbers first, as with pandas.to_numeric"
            )
        check_whole_numbers(known.to_numpy())
        numbers_of(cells)
        return NumberColumn(number_type(dtype))
    if isinstance(kind, str) and kind == "date":
        dates = as_dates(cells)
        if cells.dtype == object and _cells_are(known, "date"):
            return TimeColumn("date", None)
        own = pd.api.types.is_datetime64_any_dtype(cells.dtype)
        return TimeColumn(dtype if own else str(dates.dtype), zone_of(dates))
    if isinstance(kind, str) and kind == "duration":
        durations = as_durations(cells)
        return TimeColumn(dtype if cells.dtype.kind == "m" else str(durations.dtype), None)
    return _category(cells, known, kind, given=override is not None)


def _category(cells: pd.Series, known: pd.Series, kind: Override, *, given: bool) -> CategoryColumn:
    """Return a category, whose levels have an order or not."""
    dtype: Any = cells.dtype
    of_pandas = isinstance(dtype, pd.CategoricalDtype)
    ordered = not isinstance(kind, str) or kind == "ordered"
    declared = [python_value(each) for each in dtype.categories] if of_pandas else []
    # Objects once: levels compare as Python's values do, where 1 is 1.0.
    values = known.astype(object).map(python_value)
    order: list[Any] | None = None
    if not isinstance(kind, str):
        order = [python_value(level) for level in kind]
    elif ordered and of_pandas and dtype.ordered:
        order = declared
    elif ordered:
        levels = set(values)
        if {type_name(level) for level in levels} != {"numbers"}:
            raise ValueError(
                "its levels have no order of their own: give them in their order, as in "
                f"columns={{{cells.name!r}: ['low', 'high']}}"
            )
        order = sorted(levels)
    elif _cells_are(known, "boolean"):
        order = [False, True]
    distinct = values.nunique()
    if distinct > MOST_LEVELS_PER_ROW * len(known) and distinct > FEW_LEVELS and not given:
        raise ValueError(
            f"it has {distinct} different values in {len(known)} rows, such as "
            f"{shown(known.iloc[0])}, and seems to name the rows; drop it, or say what it is with "
            f"columns={{{cells.name!r}: 'category'}} or 'date'"
        )
    count = distinct if order is None else max(distinct, len(order))
    if count > MOST_LEVELS:
        unused = ", leave out those that do not occur" if count > distinct else ""
        raise ValueError(
            f"it has {count} levels, more than {MOST_LEVELS}; join rare ones{unused}, or drop it"
        )
    name = number_type(str(dtype)) if dtype.kind in "iuf" else str(dtype)
    return learned_category(values, name, order, declared, ordered=ordered)


def learned_category(
    values: pd.Series,
    dtype: str,
    order: Sequence[Any] | None,
    declared: Sequence[Any] = (),
    *,
    ordered: bool,
) -> CategoryColumn:
    """Learn the levels of a column.

    Parameters
    ----------
    values : Series
        The cells of fit that are not missing.
    dtype : str
        Type of the column.
    order : sequence or None
        The levels in their order, some of which need not occur; None to order them by frequency.
    declared : sequence, default=()
        All levels of pandas' category type.
    ordered : bool
        Whether the order means something.

    Returns
    -------
    CategoryColumn
        The column.
    """
    counts = values.value_counts(sort=False)
    if order is None:
        # By frequency, then by name, so that the order of the rows does not matter.
        by_name = sorted(counts.items(), key=lambda item: (type_name(item[0]), str(item[0])))
        order = [level for level, _ in sorted(by_name, key=lambda item: -int(item[1]))]
    for level in [*counts.index, *order]:
        if not isinstance(level, str | int | float | bool):
            raise ValueError(
                f"its level {shown(level)} is of the type {type(level).__name__}; convert levels "
                "to text or numbers, as with .astype(str)"
            )
    given = set(order)
    unknown = [level for level in counts.index if level not in given]
    if unknown:
        row = values.index[(values == unknown[0]).argmax()]
        raise ValueError(f"row {row} has {shown(unknown[0])}, which is not among the given levels")
    count = np.array([counts.get(level, 0) for level in order], dtype=float)
    # Good and Turing: all unseen levels together are about as frequent as levels seen once.
    reserved = min(float(((count == 1).sum() + 1) / (count.sum() + 2)), MOST_RESERVED)
    levels = tuple(map(python_value, order))
    if levels == (False, True) and all(isinstance(level, bool) for level in levels):
        reserved = 0.0  # there are no other ones
    return CategoryColumn(
        dtype,
        levels,
        ordered,
        reserved,
        tuple((count / count.sum()).tolist()),
        _with_levels(declared, levels, ordered=ordered) if declared else (),
    )


def _with_levels(
    declared: Sequence[Any], levels: tuple[Any, ...], *, ordered: bool
) -> tuple[Any, ...]:
    """Return the levels of pandas' category type, with others that the user gives."""
    known = set(levels)
    common = [level for level in declared if level in known]
    if len(common) == len(levels) and (not ordered or common == list(levels)):
        return tuple(declared)
    return tuple(dict.fromkeys([*levels, *declared]))  # the order that the user gives


def _kind_of(known: pd.Series) -> str:
    """Return the kind of cells that are not missing."""
    dtype = known.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "category"
    if pd.api.types.is_bool_dtype(dtype):
        return "category"
    if pd.api.types.is_complex_dtype(dtype):
        raise ValueError("it holds complex numbers; split them into two columns")
    if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype):
        raise ValueError(f"its type {dtype} is not supported; convert it to dates, numbers or text")
    if pd.api.types.is_numeric_dtype(dtype):
        return "number"
    if dtype.kind in "mM":
        return "date" if dtype.kind == "M" else "duration"
    found = KIND_OF_CELLS.get(pd.api.types.infer_dtype(known.astype(object)))
    return found or _kind_by_cells(known)


def _kind_by_cells(known: pd.Series) -> str:
    """Return the kind of objects that pandas has no name for, or say what is wrong with them."""
    rows: dict[str, Any] = {}
    for place, value in enumerate(known.astype(object)):
        name = pd.api.types.infer_dtype([value])
        if name not in KIND_OF_CELLS:
            raise ValueError(
                f"row {known.index[place]} has {shown(value)} of the type {type(value).__name__}; "
                "cells are numbers, text, booleans, dates or durations"
            )
        # Text and booleans are both categories, but not in one column.
        rows.setdefault(name if name in ("string", "boolean") else KIND_OF_CELLS[name], place)
    if len(rows) > 1:
        cells = [f"{shown(known.iloc[at])} in row {known.index[at]}" for at in rows.values()]
        raise ValueError(f"it mixes kinds of cells: {', '.join(cells)}; convert them to one kind")
    return next(KIND_OF_CELLS.get(name, name) for name in rows)


def _cells_are(known: pd.Series, name: str) -> bool:
    if isinstance(known.dtype, pd.CategoricalDtype) or known.dtype.kind in "iufcmM":
        return False
    return pd.api.types.infer_dtype(known.astype(object)) == name
