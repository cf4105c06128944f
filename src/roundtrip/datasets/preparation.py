"""Noise and scaling of whole tables before they are split, as in the paper's Appendix D."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def spread(
    X: FloatArray, half_step: float, rng: np.random.Generator, columns: Sequence[int] | None = None
) -> FloatArray:
    """Return X with uniform noise from (-half_step, half_step) added to some columns.

    Parameters
    ----------
    X : ndarray of shape (rows, features)
        The table.
    half_step : float
        Half the width of the noise.
    rng : numpy.random.Generator
        Random generator.
    columns : sequence of int or None, default=None
        Numbers of the columns; None means all.

    Returns
    -------
    ndarray of shape (rows, features)
        A new table.

    Examples
    --------
    >>> spread(np.zeros((1, 3)), 0.5, np.random.default_rng(0), columns=[1]).round(3)
    array([[0.   , 0.137, 0.   ]])
    """
    X = X.copy()
    chosen = list(range(X.shape[1])) if columns is None else list(columns)
    X[:, chosen] += rng.uniform(-half_step, half_step, (len(X), len(chosen)))
    return X


def min_max(X: FloatArray) -> FloatArray:
    """Scale each column to [0, 1]; a constant column becomes 0.

    Examples
    --------
    >>> min_max(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    array([[0. , 0. ],
           [0.5, 0. ],
           [1. , 0. ]])
    """
    low = X.min(axis=0)
    span = X.max(axis=0) - low
    return (X - low) / np.where(span > 0, span, 1.0)
