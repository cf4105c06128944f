"""Kinds of columns: numbers and categories.

A column turns its cells into float64 and back. Numbers stay as they are, dates and durations
(`times.py`) become days, and levels of a category become their places 0, 1, ...; the place after
the last stands for any unseen level, one that `fit` has not seen. A missing cell is NaN.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from roundtrip.data.cells import is_missing, numbers_of, python_value, shown, type_name

SHOWN_LEVELS = 5
"""Number of levels that the description of a category names."""


class Column(ABC):
    """Base class of kinds of columns, each a frozen dataclass.

    Attributes
    ----------
    dtype : str
        Type of the column in the table of fit.
    """

    dtype: str

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the kind."""

    @property
    def is_of_numbers(self) -> bool:
        """Whether the cells are numbers or booleans, also as codes of levels."""
        return False

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


@dataclass(frozen=True)
class NumberColumn(Column):
    """A column of numbers.

    Attributes
    ----------
    dtype : str
        Type of the column in the table of fit.
    step : float, default=0.0
        Rounding step of its values, for its description; 0 if they are not rounded.

    Examples
    --------
    >>> column = NumberColumn("Int64", step=1.0)
    >>> print(column, column.decoded(np.array([1.0, np.nan])).tolist())
    whole number [1, <NA>]
    """

    dtype: str
    step: float = 0.0

    @property
    def kind(self) -> str:
        """The name "number"."""
        return "number"

    @property
    def is_of_numbers(self) -> bool:
        """Always true."""
        return True

    @property
    def is_whole(self) -> bool:
        """Whether the type is one of whole numbers, or of booleans in an array."""
        return not self.dtype.lower().startswith(("float", "double", "halffloat"))

    def encoded(self, cells: pd.Series) -> np.ndarray:
        """Return the numbers."""
        return numbers_of(cells)

    def decoded(self, values: np.ndarray) -> pd.Series:
        """Return the numbers, rounded if the type is one of whole numbers."""
        if not self.is_whole:
            return pd.Series(values).astype(self.dtype)  # type: ignore[call-overload]
        missing = np.isnan(values)
        whole = pd.Series(self._within_type(np.rint(np.where(missing, 0, values))))
        if not missing.any():
            return whole.astype(self.dtype)  # type: ignore[call-overload]
        if _is_numpy(self.dtype):  # whose whole numbers can't be missing
            return pd.Series(np.rint(values))
        return whole.astype(self.dtype).mask(missing)  # type: ignore[call-overload]

    def _within_type(self, values: np.ndarray) -> np.ndarray:
        """Return whole numbers cut off at the ends of their type, which else turn their sign."""
        name = self.dtype.lower().partition("[")[0]
        if not name.startswith(("int", "uint")):  # booleans
            return values
        ends = np.iinfo(name)
        high = float(ends.max)
        return values.clip(ends.min, high if high <= ends.max else np.nextafter(high, 0))

    def __str__(self) -> str:
        if self.step == 1:
            return "whole number"
        return "number" if self.step == 0 else f"number, in steps of {self.step:.4g}"


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
        Probability of all unseen levels together; 0 if there can be none, as of booleans.
    frequencies : tuple of float
        Share of each level among the cells of fit.
    declared : tuple, default=()
        All levels of pandas' category type, which may be more and in another order.

    Examples
    --------
    >>> column = CategoryColumn("str", ("b", "a"), False, 0.01, (0.7, 0.3))
    >>> column.encoded(pd.Series(["a", None, "c"])).tolist()
    [1.0, nan, 2.0]
    >>> column.decoded(np.array([0.0, 1.0])).tolist(), str(column)
    (['b', 'a'], "category of 2 levels: 'b', 'a'")
    """

    dtype: str
    levels: tuple[Hashable, ...]
    ordered: bool
    reserved: float
    frequencies: tuple[float, ...]
    declared: tuple[Hashable, ...] = ()

    @classmethod
    def indicator(cls, share: float) -> "CategoryColumn":
        """Return the column that says which cells of another one are missing.

        Parameters
        ----------
        share : float
            Share of missing cells in fit.
        """
        return cls("bool", (False, True), False, 0.0, (1 - share, share))

    def check(self) -> None:
        """Raise `ValueError` if levels repeat or shares of the cells are no probabilities."""
        shares = (self.reserved, *self.frequencies)
        named = len(set(self.levels)) == len(self.levels) == len(self.frequencies) > 0
        declared = self.dtype != "category" or set(self.levels) <= set(self.declared)
        if not (named and declared and all(0 <= share <= 1 for share in shares)):
            raise ValueError(f"a category of {len(self.levels)} levels, with shares {shares}")

    @property
    def kind(self) -> str:
        """The name "category"."""
        return "category"

    @property
    def is_of_numbers(self) -> bool:
        """Whether all levels are numbers or booleans."""
        return not any(isinstance(level, str) for level in self.levels)

    def encoded(self, cells: pd.Series) -> np.ndarray:
        """Return the place of each cell among the levels."""
        known = {type_name(level) for level in self.levels}
        # 0 and 1 are also written for booleans, and the other way round.
        allowed = known | ({"booleans", "numbers"} if known & {"booleans", "numbers"} else set())
        objects = cells.astype(object)
        try:
            # Every distinct cell once: tables have many rows and few levels.
            codes, distinct = pd.factorize(objects)
        except TypeError:  # of lists and other cells without a hash
            codes, distinct = np.arange(len(cells)), objects.array
        for code, value in enumerate(distinct):
            if type_name(value) not in allowed and not is_missing(value):
                row = cells.index[int((codes == code).argmax())]
                had = " and ".join(sorted(known))
                raise ValueError(f"fit had {had}, but row {row} has {shown(value)}")
        place_of = {level: place for place, level in enumerate(self.levels)}
        places = [place_of.get(python_value(value), len(self.levels)) for value in distinct]
        if self.reserved == 0 and len(self.levels) in places:  # whose probability would be 0
            code = places.index(len(self.levels))
            row = cells.index[int((codes == code).argmax())]
            had = " and ".join(map(shown, self.levels))
            raise ValueError(f"fit had only {had}, but row {row} has {shown(distinct[code])}")
        return np.array([*places, np.nan])[codes]

    def decoded(self, values: np.ndarray) -> pd.Series:
        """Return the levels at these places; an unseen level has no name."""
        missing = ~((values > -0.5) & (values < len(self.levels) - 0.5))
        places = np.rint(np.where(missing, 0, values)).astype(int)
        if self.dtype == "category":
            place_of = {level: place for place, level in enumerate(self.declared)}
            codes = np.array([place_of[level] for level in self.levels])[places]
            categories = pd.Index(list(self.declared))
            codes = np.where(missing, -1, codes)
            return pd.Series(pd.Categorical.from_codes(codes, categories, ordered=self.ordered))
        levels = np.empty(len(self.levels), dtype=object)
        levels[:] = self.levels
        cells = pd.Series(levels[places], dtype=object)
        if missing.any():
            cells = cells.mask(missing, None)
            if self.dtype == "bool":  # NumPy's booleans can't be missing
                return cells
            if _is_numpy(self.dtype):
                return cells.astype(np.float64)
        return cells.astype(self.dtype)  # type: ignore[call-overload]

    def __str__(self) -> str:
        count = len(self.levels)
        listed = ", ".join(map(shown, self.levels[:SHOWN_LEVELS]))
        more = ", ..." if count > SHOWN_LEVELS else ""
        name = "ordered category" if self.ordered else "category"
        return f"{name} of {count} level{'s' * (count != 1)}: {listed}{more}"


def _is_numpy(dtype: str) -> bool:
    """Whether a type of numbers is NumPy's, such as "int64"; pandas' own is "Int64"."""
    return dtype.startswith(("int", "uint", "bool")) and "[" not in dtype and dtype != "boolean"
