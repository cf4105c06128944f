"""The steps in which columns are rounded."""

import numpy as np

MOST_DISTINCT = 0.1
"""Share of distinct values among a column's rows up to which it counts as rounded."""

SMALLEST_GAP = 1e-9


def column_resolution(X: np.ndarray) -> np.ndarray:
    """The step in which each column is rounded, 0 for columns that are not; `(features,)`.

    A column counts as rounded when it has few distinct values for its number of rows, as counts,
    codes and coarse measurements do. Its step is the smallest gap between values that are not just
    different by arithmetic error; 1 for a column of one value.

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = np.stack([random.normal(size=500), random.integers(5, size=500) / 10], axis=1)
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
