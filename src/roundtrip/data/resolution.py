"""Detection of rounded columns and of their rounding steps."""

import numpy as np

MOST_DISTINCT = 0.1
"""A column counts as rounded up to this number of distinct values per row."""

SMALLEST_GAP = 1e-9
"""Gaps up to this share of a column's range are arithmetic error."""


def column_resolution(X: np.ndarray) -> np.ndarray:
    """Return the rounding step of each column.

    A column counts as rounded if it has few distinct values for its number of rows, as counts,
    codes and coarse measurements do. Its step is the smallest gap between distinct values, apart
    from gaps due to arithmetic error. The step of a constant column is 1.

    Parameters
    ----------
    X : numpy.ndarray of shape (rows, features)
        The table.

    Returns
    -------
    numpy.ndarray
        `(features,)` steps, 0 for columns that are not rounded.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([rng.normal(size=500), rng.integers(5, size=500) / 10], axis=1)
    >>> column_resolution(X).round(3)
    array([0. , 0.1])
    """
    resolution = np.zeros(X.shape[1])
    for place, column in enumerate(X.T):
        values = np.unique(column)
        if len(values) == 1:
            resolution[place] = 1.0
        elif len(values) <= MOST_DISTINCT * len(column):
            gaps = np.diff(values)
            resolution[place] = gaps[gaps > SMALLEST_GAP * np.ptp(values)].min(initial=np.inf)
    return np.where(np.isfinite(resolution), resolution, 0.0)
