"""The context of a conditional density: class labels or covariates, encoded as numbers."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd

from roundtrip.data.cells import text_of
from roundtrip.data.masked import check_unmasked

SHOWN_LABELS = 10
MOST_LABELS, FEWEST_ROWS = 0.5, 20
"""Largest share of the rows that may have labels of their own, in tables of at least so many rows.
"""


@dataclass(frozen=True)
class Context:
    """An encoding of the context: labels one-hot, covariates standardised.

    Attributes
    ----------
    labels : tuple or None
        The classes in sorted order; None for covariates.
    shift : numpy.ndarray or None
        `(width,)` means of the covariates; None for labels.
    scale : numpy.ndarray or None
        `(width,)` standard deviations of the covariates, 1 for constant ones; None for labels.
    names : tuple of str or None
        Column names, if the context was a named pandas Series or a DataFrame.

    Examples
    --------
    >>> context = Context.fit(["b", "a", "b"])
    >>> context.labels, context.encode(["a"], 1).tolist()
    (('a', 'b'), [[1.0, 0.0]])
    """

    labels: tuple[Hashable, ...] | None = None
    shift: np.ndarray | None = None
    scale: np.ndarray | None = None
    names: tuple[str, ...] | None = None

    @classmethod
    def fit(cls, values: Any) -> Self:
        """Learn the classes of labels, or the means and standard deviations of covariates.

        Arrays of numbers of shape `(rows, columns)`, tables of several columns and columns of
        numbers that are not all whole are covariates; any other single column holds labels.

        Parameters
        ----------
        values : array-like of shape (rows,) or (rows, columns)
            The context of the training rows.

        Returns
        -------
        Context
            The encoding.
        """
        check_unmasked("context", values)
        names = _names(values)
        column = _labels(values)
        if column is not None:
            labels = _in_order(set(column))
            if len(labels) > MOST_LABELS * len(column) and len(column) >= FEWEST_ROWS:
                raise ValueError(
                    f"context has {len(labels)} different labels in {len(column)} rows: "
                    f"{_listed(labels)}. If they are numbers, pass them as a covariate, an array "
                    "of shape (rows, 1); if they name the rows, leave them out"
                )
            return cls(labels=tuple(labels), names=names)
        table = _covariates(values)
        spread = table.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        return cls(shift=table.mean(axis=0), scale=scale, names=names)

    def plain(self) -> dict[str, Any]:
        """Return the encoding as JSON content for a model file."""
        if self.labels is None:
            assert self.shift is not None
            assert self.scale is not None
            return {
                "shift": self.shift.tolist(),
                "scale": self.scale.tolist(),
                "names": self.names,
            }
        for label in self.labels:
            check_label(label)
        return {"labels": list(self.labels), "names": self.names}

    @classmethod
    def restored(cls, content: dict[str, Any]) -> Self:
        """Return the encoding whose `plain` content this is."""
        names = None if content.get("names") is None else tuple(content["names"])
        if "labels" in content:
            return cls(labels=tuple(content["labels"]), names=names)
        return cls(shift=np.array(content["shift"]), scale=np.array(content["scale"]), names=names)

    @property
    def width(self) -> int:
        """Encoded numbers per row."""
        if self.labels is not None:
            return len(self.labels)
        assert self.shift is not None
        return len(self.shift)

    def encode(self, values: Any, n_rows: int) -> np.ndarray:
        """Encode the context of `n_rows` rows.

        Parameters
        ----------
        values : array-like of shape (n_rows,) or (n_rows, columns), or one value
            The context; a single value or row, which may be flat, applies to all rows.
        n_rows : int
            Number of rows.

        Returns
        -------
        numpy.ndarray
            `(n_rows, width)`.
        """
        if values is None:
            raise ValueError(
                "this estimator was fitted with context=, so it estimates p(x | context): pass the "
                "context of the rows here, too"
            )
        check_unmasked("context", values)
        if isinstance(values, pd.DataFrame) and self.names is not None:
            values = self._by_name(values)
        if self.labels is not None:
            encoded = self._one_hot(values)
        else:
            assert self.shift is not None
            assert self.scale is not None
            table = _covariates(values)
            if self.width > 1 and np.ndim(values) == 1:
                table = table.T  # one row of several covariates
            if table.shape[1] != self.width:
                raise ValueError(
                    f"context has {table.shape[1]} columns, but it had {self.width} in fit"
                )
            encoded = (table - self.shift) / self.scale
        if len(encoded) == 1:
            encoded = np.repeat(encoded, n_rows, axis=0)
        if len(encoded) != n_rows:
            raise ValueError(
                f"context has {len(encoded)} rows, but there are {n_rows} rows to go with it"
            )
        return encoded

    def recognised(self, values: Sequence[Any]) -> list[Any]:
        """Replace labels from a file or a command line by the labels of fit with the same text.

        1, 1.0 and "1" have the same text. Unknown labels are returned unchanged.

        Examples
        --------
        >>> Context.fit([1.0, 2.0]).recognised(["1", 2])
        [1.0, 2.0]
        """
        known = {text_of(label): label for label in self.labels or ()}
        return [known.get(text_of(value), value) for value in values]

    def _by_name(self, values: pd.DataFrame) -> pd.DataFrame:
        """Return the columns in the order of fit; missing or additional ones are an error."""
        assert self.names is not None
        if sorted(map(str, values.columns)) != sorted(self.names):
            raise ValueError(
                f"context has the columns {_listed(list(values.columns))}, but in fit it had "
                f"{_listed(self.names)}"
            )
        return values.set_axis(list(map(str, values.columns)), axis=1)[list(self.names)]

    def _one_hot(self, values: Any) -> np.ndarray:
        assert self.labels is not None
        single = isinstance(values, str | bytes | tuple) or np.ndim(values) == 0
        column = list(_one_column([values] if single else values))
        place = {label: number for number, label in enumerate(self.labels)}
        unknown = {value for value in column if value not in place}
        if unknown:
            raise ValueError(
                f"context has labels that did not occur in fit: {_listed(_in_order(unknown))}; "
                f"known are {_listed(self.labels)}"
            )
        return np.eye(self.width)[[place[value] for value in column]]


def check_label(label: Hashable) -> None:
    """Raise `ValueError` for a label that a model file can't hold."""
    if not isinstance(label, str | int | float | bool):
        raise ValueError(
            f"the label {label!r} can't be saved: a model file holds labels that are text, numbers "
            "or bools"
        )


def _names(values: Any) -> tuple[str, ...] | None:
    if isinstance(values, pd.DataFrame):
        return tuple(map(str, values.columns))
    name = values.name if isinstance(values, pd.Series) else None
    return None if name is None else (str(name),)


def _labels(values: Any) -> list[Hashable] | None:
    """Return the values as class labels, or None if they are covariates."""
    if not _are_tuples(values) and np.ndim(values) == 2:
        table = isinstance(values, pd.DataFrame) or np.asarray(values).dtype.kind not in "iuf"
        if np.shape(values)[1] > 1 or not table:
            return None
    column = _one_column(values)
    numbers = [value for value in column if isinstance(value, Real) and type(value) is not bool]
    if len(numbers) == len(column) and any(value % 1 for value in numbers):
        return None
    if any(pd.api.types.is_scalar(value) and pd.isna(value) for value in column):
        raise ValueError("context has missing values; fill or drop their rows")
    return column


def _are_tuples(values: Any) -> bool:
    """Whether `values` is a list with tuples, which are labels rather than rows of a table."""
    return isinstance(values, list) and any(isinstance(value, tuple) for value in values)


def _one_column(values: Any) -> list[Any]:
    """Return one value per row, as Python's own types where possible."""
    if isinstance(values, pd.DataFrame):
        values = values.iloc[:, 0]
    if isinstance(values, pd.Series):
        return values.astype(object).tolist()
    array = np.asarray(values) if not isinstance(values, list | tuple) else values
    if isinstance(array, np.ndarray):
        return array.reshape(len(array)).tolist() if array.ndim else [array.item()]
    return [value.item() if isinstance(value, np.generic) else value for value in array]


def _covariates(values: Any) -> np.ndarray:
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"context was numbers in fit, or has several columns, and must be numbers: {error}; "
            "encode categories first"
        ) from error
    table = np.atleast_1d(table)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"context must have shape (rows,) or (rows, columns), got {table.shape}")
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"context has missing or infinite values: {table[row, column]} in row {row}, column "
            f"{column}; fill or drop their rows"
        )
    return table


def _listed(labels: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, labels[:SHOWN_LABELS]))
    return shown + (", ..." if len(labels) > SHOWN_LABELS else "")


def _in_order(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # labels of several types have no common order
        return sorted(labels, key=lambda label: (type(label).__name__, repr(label)))
