"""`TableFormat`: the library, labels and kinds of columns of a table, and its conversion."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from roundtrip.data.cells import check_whole_numbers
from roundtrip.data.column_types import number_type
from roundtrip.data.inference import Override, inferred
from roundtrip.data.kinds import CategoryColumn, Column, NumberColumn
from roundtrip.data.libraries import arrow_schema, as_frame, as_library, check_unique
from roundtrip.data.times import TimeColumn

KINDS: dict[str, type[Column]] = {
    "number": NumberColumn,
    "category": CategoryColumn,
    "date": TimeColumn,
    "duration": TimeColumn,
}


@dataclass(frozen=True)
class TableFormat:
    """What tables look like: where their columns come from and what each of them holds.

    Attributes
    ----------
    library : str
        Library of the table of fit: "numpy" for arrays and lists, "pandas", "polars", "pyarrow".
    labels : list or None
        Labels of the columns; None for arrays.
    columns : tuple of Column
        The columns.
    types : str or None, default=None
        Types of a table that is not pandas', as Arrow writes them, in base 64.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.5, None], "colour": ["red", "blue"]})
    >>> form, cells = TableFormat.learned(table, None)
    >>> [str(column) for column in form.columns]
    ['number', "category of 2 levels: 'blue', 'red'"]
    >>> cells.to_numpy().tolist()
    [[1.5, 1.0], [nan, 0.0]]
    >>> form.table(cells.to_numpy()).equals(table)
    True
    """

    library: str
    labels: list[Any] | None
    columns: tuple[Column, ...]
    types: str | None = None

    @classmethod
    def learned(cls, X: Any, overrides: Mapping[Any, Override] | None) -> tuple[Self, Any]:
        """Learn the kinds of columns of a table.

        Parameters
        ----------
        X : DataFrame of any library, array or nested list
            The table of fit.
        overrides : mapping or None
            Kinds of some columns, by their labels, or by their numbers in an array.

        Returns
        -------
        form : TableFormat
            The format.
        cells : object
            Numbers to check and convert: a DataFrame of float64, an array of float64, or `X` if it
            is an array of numbers or no table.
        """
        overrides = dict(overrides or {})
        library, frame = as_frame(X)
        if frame is None and not overrides and _are_plain(X):
            array = np.asarray(X)  # of numbers, or refused by the check that follows
            features = array.shape[1] if array.ndim == 2 else 0
            if array.ndim == 2 and array.dtype.kind in "iu":
                for place, column in enumerate(array.T):
                    with naming(place):
                        check_whole_numbers(column)
            dtype = number_type(str(array.dtype)) if isinstance(X, np.ndarray) else "float64"
            return cls("numpy", None, (NumberColumn(dtype),) * features), X
        if frame is not None and len(frame) == 0:
            raise ValueError("Found a table with 0 sample(s), but fit needs at least 2 rows")
        table = frame_of_array(X) if frame is None else frame
        labels = list(table.columns)
        check_unique(labels)
        for label in labels if frame is not None else ():
            _plain(label)  # refuses what a file can't hold, before a long fit
        unknown = [label for label in overrides if label not in labels]
        if unknown:
            raise ValueError(
                f"columns= names {', '.join(map(repr, unknown))}, but the table has no such column"
            )
        columns = []
        for place, label in enumerate(labels):
            with naming(label):
                columns.append(inferred(table.iloc[:, place], overrides.get(label)))
        if frame is None:
            form = cls("numpy", None, tuple(columns))
        else:
            form = cls(library, labels, tuple(columns), arrow_schema(X))
        return form, form.cells(X)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers."""
        return all(column.kind == "number" for column in self.columns)

    def cells(self, X: Any) -> Any:
        """Convert the cells of a table like that of fit to numbers, NaN for missing cells.

        Parameters
        ----------
        X : DataFrame of any library, array or nested list
            The table. Its labels are not checked; its columns are those of fit by their places.

        Returns
        -------
        object
            As in `learned`.
        """
        _, frame = as_frame(X)
        if frame is None and _are_plain(X) and (self.is_plain or np.ndim(X) != 2):
            return X
        table = frame_of_array(X) if frame is None else frame
        if table.shape[1] != len(self.columns):  # which the check that follows refuses
            zeros = np.zeros(table.shape)
            return zeros if frame is None else pd.DataFrame(zeros, columns=table.columns)
        parts = np.empty(table.shape)
        for place, column in enumerate(self.columns):
            with naming(table.columns[place]):
                parts[:, place] = column.encoded(table.iloc[:, place])
        if frame is None:
            return parts
        return pd.DataFrame(parts, index=table.index, columns=table.columns)

    def table(
        self,
        values: np.ndarray,
        ranges: Sequence[tuple[float, float]] | None = None,
        *,
        exact: bool = True,
    ) -> Any:
        """Convert `(rows, columns)` float64 to a table of the library and types of fit.

        Parameters
        ----------
        values : numpy.ndarray of shape (rows, columns)
            Numbers, days and places of levels.
        ranges : sequence of tuple of float, default=None
            Smallest and largest value of each column, to which whole numbers are limited.
        exact : bool, default=True
            Whether columns of numbers have the types of fit; else they are float64.

        Returns
        -------
        object
            The table.
        """
        decoded = []
        for place, column in enumerate(self.columns):
            each = values[:, place]
            if isinstance(column, NumberColumn):
                column = column if exact else NumberColumn("float64")
                if column.is_whole and ranges is not None:
                    each = np.clip(np.rint(each), *ranges[place])
            decoded.append(column.decoded(each))
        if self.labels is None:
            arrays = [np.asarray(column) for column in decoded]
            if not self.is_plain and len({array.dtype.kind for array in arrays}) > 1:
                arrays = [array.astype(object) for array in arrays]
            return np.stack(arrays, axis=1) if arrays else values
        frame = pd.concat(decoded, axis=1)
        frame.columns = pd.Index(self.labels)
        return as_library(frame, self.library, self.types if exact else None)

    def with_steps(self, steps: Sequence[float]) -> Self:
        """Return the format with the rounding steps of numbers, dates and durations."""
        columns = [
            replace(column, step=step) if isinstance(column, NumberColumn | TimeColumn) else column
            for column, step in zip(self.columns, steps, strict=True)
        ]
        return replace(self, columns=tuple(columns))

    def relabelled(self, X: Any) -> Self:
        """Return the format with the labels, library and types of another table.

        Parameters
        ----------
        X : DataFrame of any library, array or nested list
            A table with the same columns.
        """
        library, frame = as_frame(X)
        if frame is None:
            dtypes = [np.asarray(X).dtype if _are_plain(X) else "float64"] * len(self.columns)
        else:
            dtypes = list(frame.dtypes)
        columns = [
            replace(column, dtype=number_type(str(dtype)))
            if isinstance(column, NumberColumn)
            else column
            for column, dtype in zip(self.columns, dtypes, strict=False)  # checked afterwards
        ]
        return replace(
            self,
            library=library,
            labels=None if frame is None else list(frame.columns),
            columns=tuple(columns),
            types=None if frame is None else arrow_schema(X),
        )

    def plain(self) -> dict[str, Any]:
        """Return the format as JSON content for a model file."""
        return {
            "library": self.library,
            "labels": None if self.labels is None else [_plain(label) for label in self.labels],
            "columns": [column.plain() for column in self.columns],
            "types": self.types,
        }

    @classmethod
    def restored(cls, content: dict[str, Any]) -> Self:
        """Return the format whose `plain` content this is."""
        labels = content["labels"]
        return cls(
            content["library"],
            None if labels is None else [_label(each) for each in labels],
            tuple(restored_column(column) for column in content["columns"]),
            content["types"],
        )


def restored_column(content: dict[str, Any]) -> Column:
    """Return the column whose `plain` content this is.

    Examples
    --------
    >>> restored_column({"kind": "number", "dtype": "int8", "step": 1.0})
    NumberColumn(dtype='int8', step=1.0)
    """
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in content.items()
        if name != "kind"
    }
    return KINDS[content["kind"]](**settings)


@contextmanager
def naming(label: Any) -> Iterator[None]:
    """Put the label of a column before the message of a `ValueError` of the block."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"column {label!r}: {error}") from error


def _are_plain(X: Any) -> bool:
    """Whether an array or nested list holds numbers only, or is no table at all."""
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return True
    return array.ndim != 2 or array.dtype.kind not in "OUSTMm"


def frame_of_array(X: Any) -> pd.DataFrame:
    """Return an array or nested list as a DataFrame, in which each column has a type of its own.

    Examples
    --------
    >>> frame_of_array([[1.5, "a"], [2.0, "b"]])[0].tolist()
    [1.5, 2.0]
    """
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    return pd.DataFrame(array).infer_objects()


def _plain(label: Any) -> Any:
    """Return a column label as JSON content."""
    if isinstance(label, tuple):
        return [_plain(part) for part in label]
    label = label.item() if isinstance(label, np.generic) else label
    if not isinstance(label, str | int | float | bool) or label != label:
        raise ValueError(
            f"the label {label!r} of a column must be text, a number, a bool or a tuple of these; "
            "rename the columns, as with df.columns = df.columns.astype(str)"
        )
    return label


def _label(content: Any) -> Any:
    """Return the column label whose `_plain` content this is."""
    return tuple(map(_label, content)) if isinstance(content, list) else content
