"""Dates and durations as columns of days."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow

from roundtrip.data.cells import shown, type_name
from roundtrip.data.kinds import Column
from roundtrip.data.rounding import Rounding

DAY = 86_400
"""Seconds per day."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Smallest steps of types of dates and durations."""

STEPS = {"day": 1, "hour": 24, "minute": 24 * 60, "second": DAY}
"""Steps to which dates and durations may be rounded, as parts of a day."""

ARITHMETIC = 8
"""Whole seconds are recognised up to this many times the precision of float64."""


@dataclass(frozen=True)
class TimeColumn(Column):
    """A column of dates, in days since 1970 in universal time, or of durations, in days.

    float64 holds today's dates to about a microsecond.

    Attributes
    ----------
    dtype : str
        Type of the column in the table of fit; "date" for objects that are dates without a time.
    zone : str or None
        Time zone of dates; None for dates without one and for durations.
    step : float, default=0.0
        Rounding step in days, for its description; 0 if the values are not rounded.

    Examples
    --------
    >>> column = TimeColumn("datetime64[s]", None, step=0.5)
    >>> days = column.encoded(pd.Series(pd.to_datetime(["1970-01-03 12:00"])))
    >>> days.tolist(), str(column.decoded(days)[0]), str(column)
    ([2.5], '1970-01-03 12:00:00', 'date, in steps of 12 hours')
    """

    dtype: str
    zone: str | None
    step: float = 0.0

    @property
    def kind(self) -> str:
        """Either "date" or "duration"."""
        return "duration" if "timedelta" in self.dtype or "duration" in self.dtype else "date"

    def encoded(self, cells: pd.Series) -> np.ndarray:
        """Return days."""
        if cells.isna().all():
            return np.full(len(cells), np.nan)
        if self.kind == "duration":
            return days_of(as_durations(cells))
        times = as_dates(cells)
        zone = zone_of(times)
        if (zone is None) != (self.zone is None):
            now, before = ("with", "none") if zone is not None else ("without", "one")
            raise ValueError(f"its dates come {now} a time zone, but fit had {before}")
        return days_of(times)

    def decoded(self, values: np.ndarray) -> pd.Series:
        """Return dates or durations; those beyond the range of their type become its ends."""
        missing = np.isnan(values)
        days = np.where(missing, 0, values)
        if self.dtype == "date":  # without a time, which would be cut off
            days = np.rint(days)
        unit = unit_of(self.dtype)
        seconds = days * DAY
        precision = ARITHMETIC * DAY * np.spacing(np.abs(days))
        seconds = np.where(
            np.abs(seconds - np.rint(seconds)) <= precision, np.rint(seconds), seconds
        )
        most = (2**63 - 2**12) / PER_SECOND[unit]
        counts = np.rint(seconds.clip(-most, most) * PER_SECOND[unit]).astype(np.int64)
        if self.kind == "duration":
            cells = pd.Series(counts.view(f"timedelta64[{unit}]"))
        else:
            cells = pd.Series(counts.view(f"datetime64[{unit}]"))
            if self.zone is not None:
                cells = cells.dt.tz_localize("UTC").dt.tz_convert(self.zone)
        cells = cells.mask(missing)
        if self.dtype == "date":
            return pd.Series(cells.dt.date, dtype=object).mask(missing, None)
        return cells.astype(self.dtype)  # type: ignore[call-overload]

    def __str__(self) -> str:
        if self.step == 0:
            return self.kind
        whole = [(name, self.step * parts) for name, parts in STEPS.items()]
        name, count = next(((n, c) for n, c in whole if c > 1 - 1e-6), whole[-1])
        return f"{self.kind}, in steps of {count:.4g} {name}{'s' * (abs(count - 1) > 1e-6)}"


def rounding_of_days(days: np.ndarray, recognise: Any) -> Rounding:
    """Return how dates or durations are rounded: to whole days, hours, minutes or seconds.

    Parameters
    ----------
    days : numpy.ndarray of shape (rows,)
        The observed values.
    recognise : callable
        Recognises the rounding of numbers.

    Returns
    -------
    Rounding
        The rounding in days.
    """
    for parts in STEPS.values():
        counts = np.rint(days * parts)
        precision = ARITHMETIC * parts * np.spacing(np.abs(days))
        if (np.abs(days * parts - counts) <= precision).all():
            # As whole numbers, which are counts even if their step is small.
            return recognise(counts).in_units_of(1 / parts)
    return recognise(days)


def as_dates(cells: pd.Series) -> pd.Series:
    """Return cells as dates; text in the form of ISO 8601 is read."""
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return _without_arrow(cells)

    def convert(cells: pd.Series) -> pd.Series:
        return pd.to_datetime(cells.astype(object), format="ISO8601")

    advice = "a date like 2024-12-31; convert the column first, as with pandas.to_datetime"
    return _converted(cells, convert, advice)


def as_durations(cells: pd.Series) -> pd.Series:
    """Return cells as durations; text like "1 days 02:00:00" is read."""
    if pd.api.types.is_timedelta64_dtype(cells.dtype) or cells.dtype.kind == "m":
        return _without_arrow(cells)

    def convert(cells: pd.Series) -> pd.Series:
        return pd.to_timedelta(cells.astype(object))

    advice = "a duration; convert the column first, as with pandas.to_timedelta"
    return _converted(cells, convert, advice)


def days_of(times: pd.Series) -> np.ndarray:
    """Return dates as days since 1970 in universal time, and durations as days."""
    if zone_of(times) is not None:
        times = times.dt.tz_convert("UTC").dt.tz_localize(None)
    values = times.to_numpy()
    per_day = DAY * PER_SECOND[np.datetime_data(values.dtype)[0]]
    missing = np.isnat(values)
    # Whole days first: nanoseconds since 1970 have more digits than float64.
    days, rest = np.divmod(np.where(missing, 0, values.view(np.int64)), per_day)
    return np.where(missing, np.nan, days + rest / per_day)


def zone_of(times: pd.Series) -> str | None:
    """Return the time zone of dates."""
    zone = getattr(times.dt, "tz", None)
    return None if zone is None else str(zone)


def unit_of(dtype: str) -> str:
    """Return the unit of a type of dates or durations.

    Examples
    --------
    >>> unit_of("datetime64[us, UTC]"), unit_of("duration[ms][pyarrow]"), unit_of("date")
    ('us', 'ms', 's')
    """
    return next((unit for unit in ("ns", "us", "ms") if f"[{unit}" in dtype), "s")


def _without_arrow(cells: pd.Series) -> pd.Series:
    """Return a column of Arrow's types as one of pandas' own."""
    if not isinstance(cells.dtype, pd.ArrowDtype):
        return cells
    return pyarrow.array(cells).to_pandas().set_axis(cells.index)


def _converted(cells: pd.Series, convert: Any, what: str) -> pd.Series:
    known = cells[cells.notna()].astype(object)
    for row, value in known.items():
        # pandas would take numbers for nanoseconds.
        if type_name(value) in ("numbers", "booleans"):
            raise ValueError(f"row {row} has {shown(value)}, which is not {what}")
    try:
        return pd.Series(convert(cells))
    except (ValueError, TypeError, OverflowError) as error:
        for row, value in known.items():
            try:
                convert(pd.Series([value], dtype=object))
            except (ValueError, TypeError, OverflowError):
                raise ValueError(f"row {row} has {shown(value)}, which is not {what}") from error
        raise ValueError(f"not every cell is {what} ({error})") from error
