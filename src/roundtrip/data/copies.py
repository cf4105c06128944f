"""Copies of rows, which must not be on both sides of a split.

A held-out row that training has seen says nothing about new rows. But rows of categories and of
coarsely rounded numbers are equal by chance, and there equal rows belong on both sides. What tells
the two apart is a column in which nearly every distinct row has a value of its own, and in which
values a rounding step apart are rarer than repeated ones; by chance they are twice as frequent.
"""

import numpy as np

SMALLEST_SHARE = 0.05
"""Share of the distinct rows that have copies below which they do not matter. A single row that is
repeated often is a spike of the density, not a mistake."""

FEWEST_DISTINCT = 10
"""Fewer distinct rows are levels rather than copies."""

OWN_VALUES = 0.9
"""Share of the distinct rows that have a value of their own in a column that tells copies."""


def groups_of_copies(x: np.ndarray, steps: np.ndarray) -> np.ndarray | None:
    """Return for each row the number of its group of copies, `(rows,)`; None without many copies.

    Parameters
    ----------
    x : numpy.ndarray of shape (rows, features)
        Rows, NaN for missing cells.
    steps : numpy.ndarray of shape (features,)
        Rounding step of each column, 0 for numbers that are not rounded and NaN for categories.

    Examples
    --------
    >>> distinct = np.random.default_rng(0).normal(size=(20, 2))
    >>> groups_of_copies(distinct, np.zeros(2)) is None
    True
    >>> groups = groups_of_copies(np.concatenate([distinct, distinct]), np.zeros(2))
    >>> bool((groups[:20] == groups[20:]).all()), len(set(groups))
    (True, 20)
    """
    rows, telling = len(x), np.flatnonzero(~np.isnan(steps))
    if x.shape[1] == 1:  # repeated values of one column are no more than that
        return None
    for column in telling:  # a column with few repeated values settles it quickly
        if len(np.unique(x[:, column])) > rows / (1 + SMALLEST_SHARE):
            return None
    # Missing cells, of which none equals another, get a number that no cell has.
    cells = np.where(np.isnan(x), np.inf, x)
    distinct, groups, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    if len(distinct) < FEWEST_DISTINCT or (counts > 1).mean() < SMALLEST_SHARE:
        return None
    for column in telling:
        observed = cells[np.isfinite(cells[:, column]), column]
        values, counts = np.unique(observed, return_counts=True)
        if len(values) < OWN_VALUES * len(distinct):
            continue
        one_step_apart = np.diff(values) < 1.5 * steps[column]
        if one_step_apart.sum() < 0.5 * (counts > 1).sum():
            return groups.reshape(-1)
    return None
