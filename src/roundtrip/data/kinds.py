"""Kinds of columns: numbers, categories, ordered levels, dates and durations.

A column turns its cells into float64 and back. Numbers stay as they are, dates and durations become
days, and levels of a category become their places 0, 1, ...; the place after the last stands for
any level that `fit` has not seen. A missing cell is NaN.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from roundtrip.data.context import check_label

DAY = pd.Timedelta(days=1)
EPOCH = pd.Timestamp(0)

MOST_RESERVED = 0.05
"""Largest probability that is reserved for levels that fit has not seen."""

SHOWN_LENGTH, SHOWN_LEVELS = 40, 5


class Column(ABC):
    """Base class of kinds of columns, each a frozen dataclass.

    Attributes
    ----------
    kind : str
        Name of the kind.
    dtype : str
        Type of the column in the table of fit.
    """

    kind: ClassVar[str]
    dtype: str

    @abstractmethod
    def encoded(self, cells: pd.Series) -> np.ndarray:
        """Return the cells as float64, NaN where they are missing.

        Raises
        ------
        ValueError
            If a cell is of another kind; the message names the row, not the column.
        """

    @abstractmethod
    def decoded(self, values: np.ndarray) -> pd.Series:
        """Return a column of the type of fit; NaN becomes a missing cell."""

    def plain(self) -> dict[str, Any]:
        """Return the column as JSON content for a model file."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers.

    Attributes
    ----------
    dtype : str
        Type of the column in the table of fit.

    Examples
    --------
    >>> NumberColumn("Int64").decoded(np.array([1.0, np.nan])).tolist()
    [1, <NA>]
    """

    kind: ClassVar[str] = "number"
    dtype: str

    def encoded(self, cells: pd.Series) -> np.ndarray:
        """Return the numbers."""
        return numbers_of(cells)

    def decoded(self, values: np.ndarray) -> pd.Series:
        """Return the numbers, rounded if the type is one of whole numbers."""
        missing = np.isnan(values)
        if self.dtype.lower().startswith(("float", "double")):
            return pd.Series(values).astype(self.dtype)  # type: ignore[call-overload]
        whole = pd.Series(np.rint(np.where(missing, 0, values)))
        if not missing.any():
            return whole.astype(self.dtype)  # type: ignore[call-overload]
        if self.dtype.islower() and "[" not in self.dtype:  # NumPy's whole numbers have no NaN
            return pd.Series(values)
        return whole.astype(self.dtype).mask(missing)  # type: ignore[call-overload]


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column with levels: text, booleans, a pandas category, or codes.

    Attributes
    ----------
    dtype : str
        Type of the column in the table of fit.
    levels : tuple
        The levels: text, numbers or booleans. Those of unordered categories come in the order of
        their frequencies.
    ordered : bool
        Whether the levels have an order.
    reserved : float
        Probability of all levels together that fit has not seen.
    frequencies : tuple of float
        Share of each level among the cells of fit.

    Examples
    --------
    >>> column = CategoryColumn("str", ("b", "a"), False, 0.01, (0.7, 0.3))
    >>> column.encoded(pd.Series(["a", None, "c"])).tolist()
    [1.0, nan, 2.0]
    """

    kind: ClassVar[str] = "category"
    dtype: str
    levels: tuple[Hashable, ...]
    ordered: bool
    reserved: float
    frequencies: tuple[float, ...]

    def encoded(self, cells: pd.Series) -> np.ndarray:
        """Return the place of each cell among the levels."""
        # Every distinct cell once: tables have many rows and few levels.
        codes, distinct = pd.factorize(_of_objects(cells))
        wanted = {_type_of(level) for level in self.levels}
        for code, value in enumerate(distinct):
            if _type_of(value) not in wanted | {"boolean"} and wanted != {"boolean"}:
                row = cells.index[int((codes == code).argmax())]
                raise ValueError(f"fit had {_listed(wanted)}, but row {row} has {shown(value)}")
        place_of = {level: place for place, level in enumerate(self.levels)}
        places = [place_of.get(_python(value), len(self.levels)) for value in distinct]
        return np.array([*places, np.nan])[codes]

    def decoded(self, values: np.ndarray) -> pd.Series:
        """Return the levels at these places."""
        missing = np.isnan(values)
        places = np.where(missing, 0, values).astype(int).clip(0, len(self.levels) - 1)
        levels = np.empty(len(self.levels), dtype=object)
        levels[:] = self.levels
        if self.dtype == "category":
            codes = np.where(missing, -1, places)
            return pd.Series(
                pd.Categorical.from_codes(
                    codes, categories=pd.Index(list(self.levels)), ordered=self.ordered
                )
            )
        cells = pd.Series(levels[places], dtype=object)
        if missing.any():
            cells = cells.mask(missing, None)
            if self.dtype == "bool" or (self.dtype.islower() and self.dtype.startswith("int")):
                return cells  # NumPy's booleans and whole numbers can't be missing
        return cells.astype(self.dtype)  # type: ignore[call-overload]

    def plain(self) -> dict[str, Any]:
        """Return the column as JSON content for a model file."""
        for level in self.levels:
            check_label(level)
        return super().plain()

    def __str__(self) -> str:
        count = len(self.levels)
        listed = ", ".join(map(shown, self.levels[:SHOWN_LEVELS]))
        more = ", ..." if count > SHOWN_LEVELS else ""
        name = "ordered category" if self.ordered else "category"
        return f"{name} of {count} level{'s' * (count != 1)}: {listed}{more}"


@dataclass(frozen=True)
class TimeColumn(Column):
    """A column of dates, in days since 1970, or of durations, in days.

    Attributes
    ----------
    dtype : str
        Type of the column in the table of fit.
    zone : str or None
        Time zone of dates; None for dates without one and for durations.

    Examples
    --------
    >>> column = TimeColumn("datetime64[s]", None)
    >>> days = column.encoded(pd.Series(pd.to_datetime(["1970-01-03 12:00"])))
    >>> days.tolist(), str(column.decoded(days)[0])
    ([2.5], '1970-01-03 12:00:00')
    """

    dtype: str
    zone: str | None

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Either "date" or "duration"."""
        return "duration" if "timedelta" in self.dtype or "duration" in self.dtype else "date"

    def encoded(self, cells: pd.Series) -> np.ndarray:
        """Return days."""
        if self.kind == "duration":
            return days_of(as_durations(cells))
        times = as_dates(cells)
        zone = getattr(times.dt, "tz", None)
        if (zone is None) != (self.zone is None):
            now, before = ("with", "none") if zone is not None else ("without", "one")
            raise ValueError(f"dates {now} a time zone where fit had {before}")
        return days_of(times)

    def decoded(self, values: np.ndarray) -> pd.Series:
        """Return dates or durations; those beyond the range of their type become its ends."""
        missing = np.isnan(values)
        unit = next((u for u in ("ns", "us", "ms") if f"[{u}" in self.dtype), "s")
        per_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        most = (2**63 - 2**12) / per_day
        counts = np.rint(np.where(missing, 0, values).clip(-most, most) * per_day).astype(np.int64)
        if self.kind == "duration":
            cells = pd.Series(counts.view(f"timedelta64[{unit}]"))
        else:
            cells = pd.Series(counts.view(f"datetime64[{unit}]"))
            if self.zone is not None:
                cells = cells.dt.tz_localize("UTC").dt.tz_convert(self.zone)
        cells = cells.mask(missing)
        return cells if self.dtype == "object" else cells.astype(self.dtype)  # type: ignore[call-overload]


KINDS = ("number", "category", "ordered", "date", "duration")


def restored_column(content: dict[str, Any]) -> Column:
    """Return the column whose `plain` content this is."""
    content = dict(content)
    kind = content.pop("kind")
    if kind == "category":
        for name in ("levels", "frequencies"):
            content[name] = tuple(content[name])
        return CategoryColumn(**content)
    return NumberColumn(**content) if kind == "number" else TimeColumn(**content)


def category(
    cells: pd.Series, dtype: str, order: Sequence[Any] | None, *, ordered: bool
) -> CategoryColumn:
    """Learn the levels of a column.

    Parameters
    ----------
    cells : Series
        The cells of fit.
    dtype : str
        Type of the column.
    order : sequence or None
        The levels in their order, some of which need not occur; None to order them by frequency.
    ordered : bool
        Whether the order means something.

    Returns
    -------
    CategoryColumn
        The column.
    """
    counts = _of_objects(cells).value_counts(sort=False)
    if order is None:
        # By frequency, then by name: renaming levels then changes little.
        by_name = sorted(counts.items(), key=lambda item: (type(item[0]).__name__, str(item[0])))
        order = [level for level, _ in sorted(by_name, key=lambda item: -int(item[1]))]
    unknown = [level for level in counts.index if level not in set(order)]
    if unknown:
        raise ValueError(f"{shown(unknown[0])} is not among the levels that were given")
    count = np.array([counts.get(level, 0) for level in order], dtype=float)
    total = count.sum()
    # Good and Turing: new levels are about as frequent as levels seen once.
    reserved = min((float((count == 1).sum()) + 1) / (total + 2), MOST_RESERVED)
    return CategoryColumn(
        dtype,
        tuple(_python(level) for level in order),
        ordered,
        reserved,
        tuple((count / total).tolist()),
    )


def as_dates(cells: pd.Series) -> pd.Series:
    """Return cells as dates; text is read."""
    if not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        cells = _converted(cells, pd.to_datetime, "a date")
    return pd.Series(cells.astype(f"datetime64[{_unit(cells)}]") if _is_arrow(cells) else cells)


def as_durations(cells: pd.Series) -> pd.Series:
    """Return cells as durations; text is read."""
    if not pd.api.types.is_timedelta64_dtype(cells.dtype) and not _is_arrow(cells):
        cells = _converted(cells, pd.to_timedelta, "a duration")
    return pd.Series(cells.astype(f"timedelta64[{_unit(cells)}]") if _is_arrow(cells) else cells)


def days_of(times: pd.Series) -> np.ndarray:
    """Return dates as days since 1970 in universal time, and durations as days."""
    if getattr(times.dt, "tz", None) is not None:
        times = times.dt.tz_convert("UTC").dt.tz_localize(None)
    values = times.to_numpy()
    unit = np.datetime_data(values.dtype)[0]
    per_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    missing = np.isnat(values)
    counts = np.where(missing, 0, values.view(np.int64))
    # Whole days first: nanoseconds since 1970 have more digits than float64.
    days, rest = np.divmod(counts, per_day)
    return np.where(missing, np.nan, days + rest / per_day)


def numbers_of(cells: pd.Series) -> np.ndarray:
    """Return numbers as float64, NaN for missing cells; raise `ValueError` for anything else."""
    if cells.dtype.kind in "biuf" and not _is_arrow(cells):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.CategoricalDtype):
        raise ValueError(f"fit had numbers, but row {cells.index[0]} has {shown(cells.iloc[0])}")
    values = np.empty(len(cells))
    for place, value in enumerate(_of_objects(cells)):
        if pd.api.types.is_scalar(value) and pd.isna(value):
            values[place] = np.nan
        elif isinstance(value, Real | Decimal | np.bool_):
            values[place] = float(value)
        else:
            raise ValueError(f"fit had numbers, but row {cells.index[place]} has {shown(value)}")
    return values


def shown(value: Any) -> str:
    """Return a cell as text that is not too long.

    Examples
    --------
    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    text = repr(_python(value))
    return text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "..."


def _converted(cells: pd.Series, convert: Any, what: str) -> pd.Series:
    try:
        return pd.Series(convert(cells))
    except (ValueError, TypeError, OverflowError) as error:
        known = cells[cells.notna()]
        for label, value in known.items():
            try:
                convert(pd.Series([value]))
            except (ValueError, TypeError, OverflowError):
                raise ValueError(f"row {label} has {shown(value)}, which is not {what}") from error
        raise ValueError(f"not all cells are {what}: {error}") from error


def _of_objects(cells: pd.Series) -> pd.Series:
    return cells.astype(object)


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _type_of(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, Real | Decimal):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _listed(kinds: set[str]) -> str:
    names = {"text": "text", "number": "numbers", "boolean": "booleans"}
    return " and ".join(sorted(names.get(kind, kind) for kind in kinds))


def _is_arrow(cells: pd.Series) -> bool:
    return isinstance(cells.dtype, pd.ArrowDtype)


def _unit(cells: pd.Series) -> str:
    text = str(cells.dtype)
    return next((unit for unit in ("ns", "us", "ms") if f"[{unit}" in text), "s")
