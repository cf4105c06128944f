"""Validation of the user's tables, with errors that name the columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data


def checked_table(estimator: Any, X: Any, **settings: Any) -> np.ndarray:
    """Return X as a validated float64 array; errors name the bad columns of a DataFrame.

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
    if isinstance(X, pd.DataFrame) and X.shape[1] == 0:
        raise ValueError("the table has no columns")
    try:
        return validate_data(estimator, X, dtype=np.float64, order="C", **settings)
    except (ValueError, TypeError) as error:
        culprits = bad_columns(X)
        if not culprits:
            raise
        problem = str(error).partition("\n")[0].rstrip(".")
        if isinstance(error, TypeError):  # its message is about NumPy's types and does not help
            problem = "not all columns are numbers"
        raise ValueError(
            f"{problem} (in columns {', '.join(culprits)}). Encode or drop columns that are "
            "not numbers, and fill or drop rows with missing or infinite values."
        ) from error


def bad_columns(X: Any) -> list[str]:
    """Return the names of DataFrame columns with text, dates, missing or infinite values.

    Anything but a DataFrame has no names, so the list is empty.

    Examples
    --------
    >>> import pandas as pd
    >>> bad_columns(pd.DataFrame({"a": [1.0, None], "b": ["x", "y"], "c": [1, 2]}))
    ['a', 'b']
    """
    if not isinstance(X, pd.DataFrame):
        return []
    return [str(name) for name, column in X.items() if not _all_finite(column)]


def _all_finite(column: pd.Series) -> bool:
    if column.dtype.kind in "mM":  # pandas would convert dates and durations to numbers
        return False
    return bool(np.isfinite(pd.to_numeric(column, errors="coerce").astype(float)).all())


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
