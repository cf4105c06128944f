"""Scaling and rounding of the features of a table, learned from their observed cells."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from roundtrip.data.kinds import CategoryColumn, Column
from roundtrip.data.resolution import recognise
from roundtrip.data.rounding import Rounding
from roundtrip.data.scaling import Scaling
from roundtrip.data.times import TimeColumn, rounding_of_days


def rounding_of(values: np.ndarray, kinds: Sequence[Column]) -> tuple[Rounding, ...]:
    """Return how each feature is rounded; categories are not.

    Parameters
    ----------
    values : numpy.ndarray of shape (rows, features)
        Values, NaN for missing cells.
    kinds : sequence of Column
        Kind of each feature.

    Returns
    -------
    tuple of Rounding
        One for each feature.
    """
    found = []
    for column, kind in zip(values.T, kinds, strict=True):
        observed = column[~np.isnan(column)]
        if isinstance(kind, CategoryColumn):
            count = len(kind.levels)
            found.append(Rounding(0.0, 0.0, count, low=0.0, high=float(count - 1)))
        elif isinstance(kind, TimeColumn):
            found.append(rounding_of_days(observed, recognise))
        else:
            found.append(recognise(observed))
    return tuple(found)


def scaling_of(
    values: np.ndarray,
    kinds: Sequence[Column],
    scale: str | None,
    labels: Sequence[Any] | None = None,
) -> Scaling:
    """Return the scaling of the features by their observed cells; categories keep their places.

    Parameters
    ----------
    values : numpy.ndarray of shape (rows, features)
        Values, NaN for missing cells.
    kinds : sequence of Column
        Kind of each feature.
    scale : {"standard", "minmax"} or None
        Kind of scaling.
    labels : sequence or None, default=None
        Labels of the columns, for messages; None for their numbers.

    Returns
    -------
    Scaling
        The scaling.

    Examples
    --------
    >>> from roundtrip.data.kinds import NumberColumn
    >>> scaling_of(np.array([[1.0], [np.nan], [5.0]]), [NumberColumn("float64")], "minmax").scale
    array([4.])
    """
    numeric = np.array([not isinstance(kind, CategoryColumn) for kind in kinds], dtype=bool)
    if numeric.all() and not np.isnan(values).any():
        return Scaling.fit(values, scale, labels=labels)
    named = list(range(len(kinds)) if labels is None else labels)
    scaling = Scaling(np.zeros(len(kinds)), np.ones(len(kinds)))
    for place in np.flatnonzero(numeric):
        observed = values[~np.isnan(values[:, place]), place]
        each = Scaling.fit(observed[:, None], scale, labels=[named[place]])
        scaling.shift[place], scaling.scale[place] = each.shift[0], each.scale[0]
    return scaling
