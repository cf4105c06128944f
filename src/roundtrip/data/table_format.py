"""`TableFormat`: the library, labels and kinds of columns of a table, and its conversion."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow

from roundtrip.data.inference import Override, inferred
from roundtrip.data.kinds import Column, NumberColumn, restored_column


@dataclass(frozen=True)
class TableFormat:
    """What tables look like: where their columns come from and what each of them holds.

    Attributes
    ----------
    library : {"numpy", "pandas", "polars", "pyarrow", "other"}
        Library of the table of fit; "other" for lists.
    labels : list or None
        Labels of the columns; None for arrays.
    columns : tuple of Column
        The columns.
    arrow_schema : str or None, default=None
        Types of a table that is not pandas', as Arrow writes them, in base 64.

    Examples
    --------
    >>> table = pd.DataFrame({"size": [1.5, None], "colour": ["red", "blue"]})
    >>> form, values = TableFormat.learned(table, None)
    >>> [str(column) for column in form.columns]
    ['number', "category of 2 levels: 'blue', 'red'"]
    >>> values.tolist()
    [[1.5, 1.0], [nan, 0.0]]
    >>> form.table(values).equals(table)
    True
    """

    library: str
    labels: list[Any] | None
    columns: tuple[Column, ...]
    arrow_schema: str | None = None

    @classmethod
    def learned(
        cls, X: Any, overrides: Mapping[Any, Override] | None
    ) -> tuple[Self, np.ndarray | Any]:
        """Learn the kinds of columns of a table.

        Parameters
        ----------
        X : DataFrame of any library, array or nested list
            The table of fit.
        overrides : mapping or None
            Kinds of some columns, by their labels, or by their numbers in an array.

        Returns
        -------
        format : TableFormat
            The format.
        values : numpy.ndarray or object
            `(rows, columns)` float64 with NaN for missing cells; X itself if it is an array of
            numbers, which is not checked here.
        """
        library, frame = as_frame(X)
        overrides = dict(overrides or {})
        if frame is None:
            array = np.asarray(X)
            dtype = str(array.dtype) if array.dtype.kind in "biuf" else "float64"
            places = range(array.shape[1] if array.ndim == 2 else 0)
            _check_labels(overrides, list(places))
            kinds = [
                inferred(pd.Series(array[:, place], name=place), overrides[place])
                if place in overrides
                else NumberColumn(dtype)
                for place in places
            ]
            form = cls("numpy" if isinstance(X, np.ndarray) else "other", None, tuple(kinds))
            return form, form.values(X) if overrides else X
        labels = list(frame.columns)
        _check_unique(labels)
        _check_labels(overrides, labels)
        columns = []
        for label in labels:
            with _naming(label):
                columns.append(inferred(frame[label], overrides.get(label)))
        form = cls(library, labels, tuple(columns), _arrow_schema(X))
        return form, form.values(X)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers."""
        return all(column.kind == "number" for column in self.columns)

    def values(self, X: Any) -> np.ndarray | Any:
        """Convert a table like that of fit to `(rows, columns)` float64, NaN for missing cells.

        Labels are not checked. An array of numbers is returned as it is.
        """
        _, frame = as_frame(X)
        if frame is None:
            if self.is_plain:
                return X
            frame = pd.DataFrame(np.asarray(X, dtype=object)).infer_objects()
            if frame.shape[1] != len(self.columns):
                raise ValueError(
                    f"X has {frame.shape[1]} columns, but fit had {len(self.columns)}"
                )
        parts = []
        for place, column in enumerate(self.columns):
            label = frame.columns[place] if self.labels is None else self.labels[place]
            with _naming(label):
                parts.append(column.encoded(frame.iloc[:, place]))
        return np.stack(parts, axis=1)

    def table(self, values: np.ndarray) -> Any:
        """Convert `(rows, columns)` float64 to a table of the library and types of fit."""
        columns = [c.decoded(v) for c, v in zip(self.columns, values.T, strict=True)]
        if self.labels is None:
            array = np.stack([np.asarray(column) for column in columns], axis=1)
            return array if self.library == "numpy" else array.tolist()
        frame = pd.concat(columns, axis=1)
        frame.columns = pd.Index(self.labels)
        return as_library(frame, self.library, self.arrow_schema)

    def relabelled(self, X: Any) -> Self:
        """Return the format with the labels and library of another table of the same columns."""
        library, frame = as_frame(X)
        if frame is None:
            return replace(self, library="numpy" if isinstance(X, np.ndarray) else "other", labels=None)
        labels = list(frame.columns)
        return replace(self, library=library, labels=labels, arrow_schema=_arrow_schema(X))

    def plain(self, label: Any) -> dict[str, Any]:
        """Return the format as JSON content; `label` converts a label."""
        return {
            "library": self.library,
            "labels": None if self.labels is None else [label(each) for each in self.labels],
            "columns": [column.plain() for column in self.columns],
            "arrow_schema": self.arrow_schema,
        }

    @classmethod
    def restored(cls, content: dict[str, Any], label: Any) -> Self:
        """Return the format whose `plain` content this is."""
        labels = content["labels"]
        return cls(
            content["library"],
            None if labels is None else [label(each) for each in labels],
            tuple(restored_column(column) for column in content["columns"]),
            content["arrow_schema"],
        )


def as_frame(X: Any) -> tuple[str, pd.DataFrame | None]:
    """Return the library of a table and the table as a pandas DataFrame; None for arrays.

    Examples
    --------
    >>> as_frame(np.zeros((2, 2)))
    ('numpy', None)
    """
    if isinstance(X, pd.DataFrame):
        return "pandas", X
    if isinstance(X, np.ndarray | list | tuple):
        return "numpy", None
    try:
        table = nw.from_native(X, eager_only=True)
    except TypeError:
        return "other", None
    return table.implementation.value, _from_arrow(table)


def _from_arrow(table: Any) -> pd.DataFrame:
    """Convert through Arrow, whose missing cells and whole numbers pandas then keeps."""
    frame = table.to_arrow().to_pandas(types_mapper=_nullable, date_as_object=False)
    return pd.DataFrame(frame)


def _nullable(arrow_type: Any) -> Any:
    """Return pandas' nullable type for whole numbers and booleans, which else become float."""
    if pyarrow.types.is_boolean(arrow_type):
        return pd.BooleanDtype()
    if pyarrow.types.is_integer(arrow_type):
        return pd.api.types.pandas_dtype(str(arrow_type).replace("i", "I").replace("u", "U"))
    return None


def as_library(frame: pd.DataFrame, library: str, schema: str | None) -> Any:
    """Return a DataFrame as a table of another library, with types in the form of Arrow."""
    if library == "pandas":
        return frame
    assert schema is not None
    types = pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(schema)))
    table = pyarrow.Table.from_pandas(frame, preserve_index=False).cast(types)
    return table if library == "pyarrow" else nw.from_arrow(table, backend=library).to_native()


def _arrow_schema(X: Any) -> str | None:
    """Return the types of a table that is not pandas' as text."""
    if isinstance(X, pd.DataFrame):
        return None
    types = nw.from_native(X, eager_only=True).to_arrow().schema.remove_metadata()
    return base64.b64encode(types.serialize().to_pybytes()).decode()


class _naming:  # noqa: N801
    """Puts the label of a column before the message of an error."""

    def __init__(self, label: Any) -> None:
        self.label = label

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ValueError):
            raise ValueError(f"column {self.label!r}: {error}") from error


def _check_unique(labels: list[Any]) -> None:
    repeated = [label for place, label in enumerate(labels) if label in labels[:place]]
    if repeated:
        raise ValueError(f"the table has several columns named {repeated[0]!r}; rename them")


def _check_labels(overrides: Mapping[Any, Any], labels: list[Any]) -> None:
    unknown = [label for label in overrides if label not in labels]
    if unknown:
        raise ValueError(
            f"columns= names {', '.join(map(repr, unknown))}, which the table does not have"
        )
