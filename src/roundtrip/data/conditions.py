"""`Conditions`: what a user says of columns: values, ranges and sets of levels.

A value is an observed cell. A range ``(low, high)`` of numbers, dates or ordered levels, and a set
of levels, limit a cell that stays missing. Limits are the same for all rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from roundtrip.data.cells import is_missing, shown
from roundtrip.data.kinds import CategoryColumn, Column
from roundtrip.data.libraries import as_frame
from roundtrip.data.parts import complete_columns, leave_out
from roundtrip.data.rounding import Rounding
from roundtrip.data.schema import Schema

Limit = tuple[float, float] | frozenset[int]
"""The ends of a range of spread values, or the places of some levels."""


@dataclass(frozen=True)
class Conditions:
    """What is known of some rows.

    Attributes
    ----------
    x : Tensor
        Observed cells in scaled units, `(rows, features)`; NaN for all others.
    limits : dict
        By the place of a feature: the ends of its range in scaled units, or some of its levels.
    values : numpy.ndarray
        Observed cells in the user's units, `(rows, columns)` float64; NaN for all others.
    ends : dict
        By the place of a limited number or date: the ends of its range in the user's units.
    index : pandas.Index or None
        Labels of the rows of a DataFrame.
    """

    x: Tensor
    limits: dict[int, Limit]
    values: np.ndarray
    ends: dict[int, tuple[float, float]]
    index: pd.Index | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def places(self) -> set[int]:
        """Places of the columns of which something is known in some row."""
        return set(np.flatnonzero(~np.isnan(self.values).all(axis=0)).tolist()) | set(self.limits)


def no_conditions(schema: Schema) -> Conditions:
    """Return one row of which nothing is known."""
    x = torch.full((1, schema.features), torch.nan, dtype=torch.float64)
    return Conditions(x, {}, np.full((1, schema.n_columns), np.nan), {})


def conditions_of(
    schema: Schema, owner: Any, given: Any, *, name: str = "given", exact: bool = True
) -> Conditions:
    """Check and convert the conditions that a user gives.

    Parameters
    ----------
    schema : Schema
        The schema of the table of fit.
    owner : object
        The fitted estimator.
    given : mapping or DataFrame
        Conditions by column, or rows whose cells are observed; missing cells are not known.
    name : str, default="given"
        Name of the parameter, for messages.
    exact : bool, default=True
        Whether a value is an observed cell. False makes it a limit, too: a rounded number or a
        level, which have probabilities.

    Returns
    -------
    Conditions
        One row for a mapping, one for each row of a DataFrame.
    """
    if isinstance(given, Mapping):
        return _of_mapping(schema, given, name, exact)
    library, frame = as_frame(given)
    if frame is None:
        raise ValueError(
            f"{name} must be a mapping from columns to conditions or a DataFrame, got "
            f"{type(given).__name__}"
        )
    if not exact:
        raise ValueError(f"{name} must be a mapping from columns to conditions")
    whole, left_out = complete_columns(schema, frame)
    values = schema.checked_values(owner, whole)
    x = schema.encoded(values).x
    leave_out(schema, x, left_out)
    unseen = schema.unseen(x)
    if unseen.any():
        row, place = np.argwhere(unseen)[0]
        labels = _labels(schema)
        raise ValueError(
            f"{name}: row {frame.index[row]} has a level of column {labels[place]!r} that fit has "
            "not seen"
        )
    # What is not given may be missing or not.
    for place, label in enumerate(_labels(schema)):
        rows = torch.from_numpy(np.isnan(values[:, place]))
        if rows.any():
            part = x[rows]
            leave_out(schema, part, [label])
            x[rows] = part
    return Conditions(x, {}, values, {}, frame.index if library == "pandas" else None)


def _of_mapping(schema: Schema, given: Mapping[Any, Any], name: str, exact: bool) -> Conditions:
    labels = _labels(schema)
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise ValueError(
            f"{name} names {', '.join(map(repr, unknown))}, but the columns are {labels}"
        )
    if not given:
        raise ValueError(f"{name} must name at least one column")
    values = np.full((1, schema.n_columns), np.nan)
    limits: dict[int, Limit] = {}
    ends: dict[int, tuple[float, float]] = {}
    for label, condition in given.items():
        place = labels.index(label)
        column, rounding = schema.kinds[place], schema.rounding[place]
        reader = _Reader(f"{name}[{label!r}]", column, rounding)
        found = reader.condition(condition)
        if isinstance(found, float) and exact:
            values[0, place] = found
            continue
        if isinstance(found, float):
            found = reader.limit_of(found)
        if isinstance(found, frozenset):
            limits[place] = found
            continue
        ends[place] = found
        low, high = reader.spread(*found)
        scaling = schema.scaling
        shift, scale = float(scaling.shift[place]), float(scaling.scale[place])
        limits[place] = ((low - shift) / scale, (high - shift) / scale)
    x = schema.encoded(values).x
    leave_out(schema, x, [label for label in labels if label not in given])
    for place in limits:  # a cell in a range is not missing
        if place in schema.indicated:
            x[:, schema.n_columns + schema.indicated.index(place)] = 0.0
    return Conditions(x, limits, values, ends)


@dataclass(frozen=True)
class _Reader:
    """Reads conditions on one column; `where` names it in messages."""

    where: str
    column: Column
    rounding: Rounding

    def condition(self, condition: Any) -> float | tuple[float, float] | frozenset[int]:
        """Return an observed value, the ends of a range, or the places of levels."""
        if isinstance(condition, tuple):
            return self._range(condition)
        if isinstance(condition, list | set | frozenset | np.ndarray | pd.Index):
            return self._levels(list(condition))
        return self._value(condition)

    def limit_of(self, value: float) -> tuple[float, float] | frozenset[int]:
        """Return the limit that is a single value."""
        if isinstance(self.column, CategoryColumn):
            return frozenset([int(value)])
        if self.rounding.step == 0:
            raise ValueError(
                f"{self.where}: a single value of a column that is not rounded has no probability; "
                "give a range (low, high)"
            )
        return value, value

    def spread(self, low: float, high: float) -> tuple[float, float]:
        """Return the ends of the spread values of a range."""
        ends = self.rounding.spread_range(low, high)
        if not ends[0] < ends[1]:
            raise ValueError(
                f"{self.where}: no value of the column lies in the range, {self.rounding}"
            )
        return ends

    def _value(self, value: Any) -> float:
        if is_missing(value):
            raise ValueError(f"{self.where} is missing; leave the column out instead")
        try:
            found = float(self.column.encoded(pd.Series([value]))[0])
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"{self.where} = {shown(value)} is no value of the column, a {self.column}"
            ) from error
        if not np.isfinite(found):
            raise ValueError(f"{self.where} must be finite, got {shown(value)}")
        if isinstance(self.column, CategoryColumn) and found >= len(self.column.levels):
            listed = ", ".join(map(shown, self.column.levels[:20]))
            raise ValueError(f"{self.where}: there is no level {shown(value)}, only {listed}")
        return found

    def _range(self, ends: tuple[Any, ...]) -> tuple[float, float] | frozenset[int]:
        column = self.column
        if isinstance(column, CategoryColumn) and not column.ordered:
            raise ValueError(
                f"{self.where}: levels without an order have no range; give a list of levels"
            )
        if len(ends) != 2 or (ends[0] is None and ends[1] is None):
            raise ValueError(
                f"{self.where} must be a range (low, high), in which one end may be None, got "
                f"{ends!r}"
            )
        low, high = (
            open_end if end is None else self._value(end)
            for end, open_end in zip(ends, (-np.inf, np.inf), strict=True)
        )
        if low > high or (low == high and self.rounding.step == 0 and column.kind != "category"):
            raise ValueError(f"{self.where}: the range from {ends[0]!r} to {ends[1]!r} is empty")
        if isinstance(column, CategoryColumn):
            return frozenset(place for place in range(len(column.levels)) if low <= place <= high)
        return low, high

    def _levels(self, levels: list[Any]) -> float | frozenset[int]:
        if not isinstance(self.column, CategoryColumn):
            raise ValueError(
                f"{self.where}: a list is for levels of categories; the column is a {self.column}, "
                "so give a value or a range (low, high)"
            )
        if not levels:
            raise ValueError(f"{self.where} must have at least one level")
        places = frozenset(int(self._value(level)) for level in levels)
        return float(min(places)) if len(places) == 1 else places


def _labels(schema: Schema) -> list[Any]:
    return list(schema.described())
