"""Parts of rows: tables that leave columns out, and tables whose missing cells were filled."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from roundtrip.data.libraries import as_frame
from roundtrip.data.rows import Rows
from roundtrip.data.schema import Schema


def part_of_rows(schema: Schema, owner: Any, X: Any, context: Any = None) -> Rows:
    """Check and convert rows of a table that may leave columns out, which become missing.

    Parameters
    ----------
    schema : Schema
        The schema of the table of fit.
    owner : object
        The fitted estimator.
    X : array-like
        Rows like those of fit; a DataFrame may lack columns.
    context : array-like or None, default=None
        Their context, if fit had one.

    Returns
    -------
    Rows
        float64 tensors on the CPU, NaN for missing cells and for columns that are left out.
    """
    _, frame = as_frame(X)
    if frame is None:
        return schema.rows(owner, X, context)
    whole, left_out = complete_columns(schema, frame)
    rows = schema.rows(owner, whole if left_out else X, context)
    leave_out(schema, rows.x, left_out)
    return rows


def complete_columns(schema: Schema, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Any]]:
    """Return a table with empty columns for those that it leaves out, and their labels."""
    labels = schema.columns
    if labels is None or not set(frame.columns) < set(labels):
        return frame, []
    if frame.shape[1] == 0:
        raise ValueError("the table has no columns")
    left_out = [label for label in labels if label not in set(frame.columns)]
    nothing = pd.DataFrame(None, index=frame.index, columns=left_out, dtype=object)
    return pd.concat([frame, nothing], axis=1)[labels], left_out


def leave_out(schema: Schema, x: Tensor, labels: Sequence[Any]) -> None:
    """Make the cells of columns missing, and what says that they are, in rows of `encoded`."""
    known = list(range(schema.n_columns)) if schema.columns is None else schema.columns
    for place in map(known.index, labels):
        x[:, place] = torch.nan
        if place in schema.indicated:
            x[:, schema.n_columns + schema.indicated.index(place)] = torch.nan


def completed(
    schema: Schema, values: np.ndarray, x: Tensor, rng: np.random.RandomState, *, like: Any
) -> Any:
    """Return a table of `values` whose missing cells are those of rows in scaled units.

    Parameters
    ----------
    schema : Schema
        The schema of the table of fit.
    values : numpy.ndarray of shape (rows, columns)
        What `checked_values` gave.
    x : Tensor of shape (rows, features)
        Complete rows in scaled units.
    rng : numpy.random.RandomState
        Decides which values of a partly rounded column are rounded.
    like : object
        The user's table, whose index a pandas table gets.

    Returns
    -------
    object
        A table of the library of fit.
    """
    assert schema.form is not None
    found = schema.values(x)[:, : schema.n_columns]
    each = zip(schema.rounding[: schema.n_columns], found.T, strict=True)
    found = np.stack([column.rounded(v, rng) for column, v in each], axis=1)
    ranges = [(column.low, column.high) for column in schema.rounding[: schema.n_columns]]
    missing = np.isnan(values)
    low, high = np.array(ranges).T
    # Observed values may lie beyond the range of fit.
    ends = np.where(missing, found, values)
    ranges = list(zip(np.fmin(low, ends.min(0)), np.fmax(high, ends.max(0)), strict=True))
    table = schema.form.table(ends, ranges)
    if isinstance(table, pd.DataFrame) and isinstance(like, pd.DataFrame):
        table.index = like.index
    return table
