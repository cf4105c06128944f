"""What a conditional density is conditioned on: class labels or covariates, as numbers."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd

SHOWN_LABELS = 10


@dataclass(frozen=True)
class Context:
    """How the context of rows becomes numbers: labels one-hot, covariates standardised.

    Attributes
    ----------
    labels : the classes in order, or None for covariates.
    shift, scale : `(width,)` of the covariates, or None for labels.
    names : of the columns, if it came as a named pandas Series or a DataFrame.

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
        """Learn the classes, or the spread of the covariates.

        Numbers with fractions and arrays of numbers of shape `(rows, columns)` are covariates;
        anything else in one column is labels.
        """
        names = _names(values)
        column = _labels(values)
        if column is not None:
            return cls(labels=tuple(_in_order(set(column))), names=names)
        table = _covariates(values)
        spread = table.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
        return cls(shift=table.mean(axis=0), scale=scale, names=names)

    def plain(self) -> dict[str, Any]:
        """As JSON knows it, for a model file."""
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
        """What `plain` was made of."""
        names = None if content.get("names") is None else tuple(content["names"])
        if "labels" in content:
            return cls(labels=tuple(content["labels"]), names=names)
        return cls(shift=np.array(content["shift"]), scale=np.array(content["scale"]), names=names)

    @property
    def width(self) -> int:
        """Numbers a row."""
        if self.labels is not None:
            return len(self.labels)
        assert self.shift is not None
        return len(self.shift)

    def encode(self, values: Any, n_rows: int) -> np.ndarray:
        """The context of `n_rows` rows as numbers, `(n_rows, width)`; one value serves all rows."""
        if values is None:
            raise ValueError(
                "this estimator was fitted with context=, so it gives p(x | context): pass the "
                "context of the rows here, too"
            )
        if isinstance(values, pd.DataFrame) and self.names is not None:
            values = self._by_name(values)
        if self.labels is not None:
            encoded = self._one_hot(values)
        else:
            assert self.shift is not None
            assert self.scale is not None
            table = _covariates(values)
            if table.shape[1] != self.width:
                raise ValueError(
                    f"context has {table.shape[1]} columns, but it had {self.width} in fit"
                )
            encoded = (table - self.shift) / self.scale
        if len(encoded) == 1:
            encoded = np.repeat(encoded, n_rows, axis=0)
        if len(encoded) != n_rows:
            raise ValueError(f"context is of {len(encoded)} rows, X of {n_rows}")
        return encoded

    def recognised(self, values: Sequence[Any]) -> list[Any]:
        """Labels as a file or a command line has them, as the labels of fit that look the same.

        There 1, 1.0 and "1" are one; what is not known stays as it is.

        >>> Context.fit([1.0, 2.0]).recognised(["1", 2])
        [1.0, 2.0]
        """
        known = {_text(label): label for label in self.labels or ()}
        return [known.get(_text(value), value) for value in values]

    def _by_name(self, values: pd.DataFrame) -> pd.DataFrame:
        """The columns in the order of fit; as for X, others than those are an error."""
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
                f"context has labels that were not there in fit: {_listed(_in_order(unknown))}; "
                f"known are {_listed(self.labels)}"
            )
        return np.eye(self.width)[[place[value] for value in column]]


def check_label(label: Hashable) -> None:
    """Refuse a label that a model file can't hold."""
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
    """The values as class labels; None if they are numbers to be used as such."""
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


def _text(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _are_tuples(values: Any) -> bool:
    """A list of tuples is one of labels that are tuples, not a table."""
    return isinstance(values, list) and any(isinstance(value, tuple) for value in values)


def _one_column(values: Any) -> list[Any]:
    """One value a row, as Python's own types where there are such."""
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
            f"context with several columns must be numbers: {error}; encode categories first"
        ) from error
    table = np.atleast_1d(table)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"context must have shape (rows,) or (rows, columns), got {table.shape}")
    if not np.isfinite(table).all():
        raise ValueError("context has missing or infinite values; fill or drop their rows")
    return table


def _listed(labels: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, labels[:SHOWN_LABELS]))
    return shown + (", ..." if len(labels) > SHOWN_LABELS else "")


def _in_order(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # of several kinds
        return sorted(labels, key=lambda label: (type(label).__name__, repr(label)))
