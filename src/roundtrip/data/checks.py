"""Validation of the user's tables, with errors that name columns, rows and values."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from roundtrip.data.libraries import as_frame
from roundtrip.data.masked import unmasked

SHOWN = 10
"""Largest number of columns that a message names."""


def checked_table(estimator: Any, X: Any, **settings: Any) -> np.ndarray:
    """Return X as a validated float64 array; errors name bad columns, rows and values.

    Parameters
    ----------
    estimator : object
        The estimator that validates X.
    X : array-like of shape (rows, features)
        The user's table.
    **settings : object
        Keyword arguments of scikit-learn's `validate_data`.

    Returns
    -------
    numpy.ndarray
        `(rows, features)` float64.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.base import BaseEstimator
    >>> checked_table(BaseEstimator(), pd.DataFrame({"a": [1, 2], "b": [3, 4]})).dtype
    dtype('float64')
    """
    X = unmasked(X)
    _, frame = as_frame(X)
    X = X if frame is None else frame
    if frame is not None and frame.shape[1] == 0:
        raise ValueError("the table has no columns")
    if settings.get("reset", True):
        remember_labels(estimator, None if frame is None else list(frame.columns))
    elif frame is not None:
        check_names(estimator, frame)
        check_labels(estimator, frame)
    with naming_bad_cells(X, missing=settings.get("ensure_all_finite") == "allow-nan"):
        return validate_data(estimator, X, dtype=np.float64, order="C", **settings)


@contextmanager
def naming_bad_cells(X: Any, *, missing: bool = False) -> Iterator[None]:
    """Name the columns and the first row of X with a bad value if the block, a check, raises.

    Parameters
    ----------
    X : array-like of shape (rows, features)
        The table that is checked in the block.
    missing : bool, default=False
        Whether cells may be missing.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        bad = bad_columns(X, missing=missing)
        if not bad or (isinstance(error, TypeError) and not isinstance(X, pd.DataFrame)):
            raise  # scikit-learn wants the TypeError of arrays
        problem = str(error).partition("\n")[0].rstrip(".")
        if isinstance(error, TypeError):  # its message is about NumPy's types and does not help
            problem = "not all columns are numbers"
        shown = ", ".join(bad[:SHOWN]) + (", ..." if len(bad) > SHOWN else "")
        advice = "Replace infinite values, or drop their rows."
        if not missing:
            advice = (
                "Encode or drop columns that are not numbers, and fill or drop rows with missing "
                "or infinite values."
            )
        raise ValueError(
            f"{problem} (in columns {shown}; {_first_bad_cell(X, missing)}). {advice}"
        ) from error


def has_only_numbers(X: Any) -> bool:
    """Whether a table has no text, booleans, dates or missing cells, or is no table at all.

    Examples
    --------
    >>> has_only_numbers([[1.0, 2.0]]), has_only_numbers(pd.DataFrame({"a": ["x"]}))
    (True, False)
    """
    _, frame = as_frame(X)
    X = unmasked(X)
    if frame is not None:
        return all(
            column.dtype.kind in "iufc" and not column.isna().any() for _, column in frame.items()
        )
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return True
    return array.ndim != 2 or (array.dtype.kind in "biufc" and not np.isnan(array).any())


def check_names(estimator: Any, X: pd.DataFrame) -> None:
    """Raise `ValueError` for a DataFrame with other columns than in fit, or in another order."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        return
    unseen = [str(name) for name in X.columns if name not in set(known)]
    missing = [str(name) for name in known if name not in set(X.columns)]
    if not (unseen or missing):
        validate_data(estimator, X, reset=False, skip_check_array=True)  # the order
        return
    named = {"unseen columns": unseen, "missing columns": missing}
    listed = "; ".join(f"{kind}: {', '.join(each)}" for kind, each in named.items() if each)
    try:
        validate_data(estimator, X, reset=False, skip_check_array=True)
    except ValueError as error:  # scikit-learn's message follows ours
        raise ValueError(f"{listed}\n{error}") from error


def remember_labels(estimator: Any, labels: Sequence[Any] | None) -> None:
    """Keep the labels of the columns of fit, None for an array, for `check_labels`."""
    estimator._labels_in = labels


def check_labels(estimator: Any, X: pd.DataFrame) -> None:
    """Raise `ValueError` for other labels than in fit that scikit-learn, as not text, ignores.

    Columns without labels, which pandas numbers 0, 1, ..., may follow any others.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> fitted = SimpleNamespace(_labels_in=[2019, 2020])
    >>> check_labels(fitted, pd.DataFrame([[1.0, 2.0]], columns=[2020, 2019]))
    Traceback (most recent call last):
        ...
    ValueError: the columns are 2020, 2019, but in fit they were 2019, 2020
    """
    now, numbers = list(X.columns), list(range(X.shape[1]))
    before = getattr(estimator, "_labels_in", None)
    before = numbers if before is None else list(before)
    named = [all(isinstance(label, str) for label in each) for each in (now, before)]
    if len(now) != len(before) or any(named) or now in (before, numbers):
        return
    if before != numbers or sorted(map(repr, now)) == sorted(map(repr, before)):
        lists = [", ".join(map(str, each[:SHOWN])) for each in (now, before)]
        more = ", ..." if len(now) > SHOWN else ""
        raise ValueError(f"the columns are {lists[0]}{more}, but in fit they were {lists[1]}{more}")


def bad_columns(X: Any, *, missing: bool = False) -> list[str]:
    """Return the columns with text, dates, missing or infinite values.

    Parameters
    ----------
    X : DataFrame or array-like of shape (rows, features)
        The table.
    missing : bool, default=False
        Whether missing values are fine.

    Returns
    -------
    list of str
        Names of columns, or their numbers if X is not a DataFrame; empty if X is no table.

    Examples
    --------
    >>> import pandas as pd
    >>> bad_columns(pd.DataFrame({"a": [1.0, None], "b": ["x", "y"], "c": [1, 2]}))
    ['a', 'b']
    >>> bad_columns([[1.0, 2.0], [float("nan"), 3.0]])
    ['0']
    """
    frame = _as_frame(X)
    return [str(name) for name, column in frame.items() if not _fine(column, missing).all()]


def _first_bad_cell(X: Any, missing: bool) -> str:
    """Return the label of the first row with a bad value, and the value."""
    frame = _as_frame(X)
    finite = np.stack([_fine(column, missing) for _, column in frame.items()], axis=1)
    row, place = np.argwhere(~finite)[0]
    label, value = frame.index[row], frame.iloc[row, place]
    plain = value.item() if isinstance(value, np.generic) else value
    return f"first in row {label}: {plain!r}"


def _as_frame(X: Any) -> pd.DataFrame:
    """Return a table as a DataFrame; an empty one if it is no table of numbers and text."""
    if isinstance(X, pd.DataFrame):
        return X
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        return pd.DataFrame()
    if array.ndim != 2 or array.dtype.kind not in "biufOUS":
        return pd.DataFrame()
    return pd.DataFrame(array)


def _fine(column: pd.Series, missing: bool) -> np.ndarray:
    """Whether each value of a column is a finite number, or missing if it may be."""
    if column.dtype.kind in "mM":  # pandas would convert dates and durations to numbers
        return np.zeros(len(column), dtype=bool)
    finite = np.isfinite(pd.to_numeric(column, errors="coerce").astype(float).to_numpy())
    return finite | column.isna().to_numpy() if missing else finite


@contextmanager
def unchanged_if_it_fails(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block, a fit, raises.

    Parameters
    ----------
    estimator : object
        What is fitted in the block.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(fitted_=1)
    >>> try:
    ...     with unchanged_if_it_fails(estimator):
    ...         estimator.fitted_ = 2
    ...         raise ValueError
    ... except ValueError:
    ...     estimator.fitted_
    1
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
