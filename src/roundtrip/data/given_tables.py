"""Tables of rows that were drawn given conditions: what was given stays as it was."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from roundtrip.data.conditions import Conditions
from roundtrip.data.missing import without_indicators
from roundtrip.data.rounding import Rounding
from roundtrip.data.schema import Schema


def outside_of_fit(schema: Schema, known: Conditions | None, x: Tensor) -> Tensor:
    """Return which drawn cells of rounded columns without a condition leave the range of fit.

    Parameters
    ----------
    schema : Schema
        The schema of the table of fit.
    known : Conditions or None
        The conditions, if there are limits.
    x : Tensor
        Rows in scaled units, `(rows, features)`, NaN for given cells.

    Returns
    -------
    Tensor
        A mask, `(rows, features)`.
    """
    if known is not None:
        x = x.clone()
        x[:, list(known.limits)] = np.nan
    return schema.outside(x)


def table_given(
    schema: Schema, known: Conditions, x: Tensor, rng: np.random.RandomState | None
) -> Any:
    """Return rows as a table of the library of fit, with the given cells as they were given.

    Parameters
    ----------
    schema : Schema
        The schema of the table of fit.
    known : Conditions
        The conditions.
    x : Tensor
        Complete rows in scaled units, as many for each row of conditions.
    rng : numpy.random.RandomState or None
        If given, drawn numbers are rounded like those of fit.

    Returns
    -------
    object
        The table; one of pandas has the index of the conditions, repeated.
    """
    assert schema.form is not None
    count = len(x) // len(known)
    values = without_indicators(schema.values(x), schema.indicated)
    given = np.repeat(known.values, count, axis=0)
    roundings = list(schema.rounding[: schema.n_columns])
    for place, ends in known.ends.items():
        roundings[place] = _within(roundings[place], *ends)
    if rng is not None:
        each = zip(roundings, values.T, strict=True)
        values = np.stack([column.rounded(v, rng) for column, v in each], axis=1)
    for place, (low, high) in known.ends.items():
        values[:, place] = values[:, place].clip(low, high)
    values = np.where(np.isnan(given), values, given)
    low, high = np.array([(each.low, each.high) for each in roundings]).T
    ranges = list(zip(np.fmin(low, _low(given)), np.fmax(high, -_low(-given)), strict=True))
    table = schema.form.table(values, ranges, exact=rng is not None)
    if isinstance(table, pd.DataFrame) and known.index is not None:
        table.index = known.index.repeat(count)
    return table


def _within(rounding: Rounding, low: float, high: float) -> Rounding:
    """Return a rounding whose values lie in a range, also in one beyond the range of fit."""
    if low <= rounding.high and high >= rounding.low:
        low, high = max(low, rounding.low), min(high, rounding.high)
    return replace(rounding, low=low, high=high)


def _low(values: np.ndarray) -> np.ndarray:
    """Return the smallest observed value of each column, inf if there is none."""
    return np.where(np.isnan(values), np.inf, values).min(axis=0)
