"""`ColumnUnits`: values of one column between the user's form and scaled units."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from roundtrip.data.kinds import Column
from roundtrip.data.rounding import Rounding
from roundtrip.data.schema import Schema
from roundtrip.data.times import TimeColumn


@dataclass(frozen=True)
class ColumnUnits:
    """Kind, rounding and scaling of one column.

    Attributes
    ----------
    column : Column
        Its kind.
    rounding : Rounding
        How its values are rounded.
    shift, scale : float
        Of its scaling.

    Examples
    --------
    >>> from roundtrip.data.kinds import NumberColumn
    >>> whole = Rounding(1.0, 1.0, 9, low=0.0, high=8.0, decimals=0)
    >>> units = ColumnUnits(NumberColumn("int64", 1.0), whole, 4.0, 2.0)
    >>> units.scaled(units.encoded([6, 8], rows=2)).tolist()
    [[1.0], [2.0]]
    >>> units.decoded(units.rounded(units.unscaled(np.array([[0.4]]))))[0].tolist()
    [5]
    """

    column: Column
    rounding: Rounding
    shift: float
    scale: float

    @classmethod
    def of(cls, schema: Schema, place: int) -> Self:
        """Return the units of the column at a place."""
        scaling = schema.scaling
        return cls(
            schema.kinds[place],
            schema.rounding[place],
            float(scaling.shift[place]),
            float(scaling.scale[place]),
        )

    def encoded(self, x: Any, rows: int) -> np.ndarray:
        """Return cells as float64 in the user's units, `(rows, points)`.

        Parameters
        ----------
        x : object
            A cell for all rows, one for each row, or an array of `(rows, points)`.
        rows : int
            Number of rows.

        Returns
        -------
        numpy.ndarray
            Numbers, days and places of levels.
        """
        cells = x if isinstance(x, pd.Series) else np.asarray(x, dtype=object)
        if cells.ndim > 2 or (cells.ndim and len(cells) not in (rows, 1)[: cells.ndim]):
            raise ValueError(
                f"x must be one value, one for each of {rows} rows, or an array of (rows, points), "
                f"got the shape {cells.shape}"
            )
        shape = cells.shape if cells.ndim == 2 else (cells.size, 1)
        flat = cells if isinstance(cells, pd.Series) else pd.Series(cells.ravel()).infer_objects()
        values = self.column.encoded(flat.reset_index(drop=True)).reshape(shape)
        return np.broadcast_to(values, (rows, shape[1])).copy()

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Convert from the user's units to scaled units."""
        return (values - self.shift) / self.scale

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """Convert from scaled units to the user's units."""
        return x * self.scale + self.shift

    def rounded(self, values: np.ndarray, rng: np.random.RandomState | None = None) -> np.ndarray:
        """Return values that look like those of fit; `rng` is for partly rounded columns."""
        rng = np.random.RandomState(0) if rng is None else rng
        return self.rounding.rounded(values.ravel(), rng).reshape(values.shape)

    def upper_ends(self, values: np.ndarray) -> np.ndarray:
        """Return up to where fitting spreads these values."""
        ends = [self.rounding.spread_range(-np.inf, each)[1] for each in values.ravel().tolist()]
        return np.array(ends).reshape(values.shape)

    def decoded(self, values: np.ndarray) -> list[pd.Series]:
        """Return the columns of `(rows, n)` values in the type of fit."""
        return [self.column.decoded(each) for each in values.T]

    def means(self, values: np.ndarray) -> list[pd.Series]:
        """Return the columns of `(rows, n)` means: numbers as float64, dates as dates."""
        is_time = isinstance(self.column, TimeColumn)
        return self.decoded(values) if is_time else [pd.Series(each) for each in values.T]

    def widths(self, x: np.ndarray) -> list[pd.Series]:
        """Return the columns of `(rows, n)` differences in scaled units: of dates, durations."""
        values = x * self.scale
        if isinstance(self.column, TimeColumn):
            return [pd.Series(pd.to_timedelta(each, unit="D")) for each in values.T]
        return [pd.Series(each) for each in values.T]
