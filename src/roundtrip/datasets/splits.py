"""Random division of rows into training, validation and test part (about 81, 9 and 10 %)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Parts(NamedTuple):
    """Row numbers of the three parts; each row is in exactly one part."""

    train: Indices
    validation: Indices
    test: Indices


def split_rows(n_rows: int, rng: np.random.Generator) -> Parts:
    """Divide rows at random: a tenth for testing, a tenth of the rest for validation.

    Both numbers are rounded down, which gives the sizes of the paper's tables S1 and S2.

    Examples
    --------
    >>> parts = split_rows(42_239, np.random.default_rng(0))  # AReM
    >>> [len(part) for part in parts]
    [34215, 3801, 4223]
    """
    n_test = n_rows // 10
    n_validation = (n_rows - n_test) // 10
    return _cut(rng.permutation(n_rows), n_validation, n_test)


def split_groups(groups: Indices, rng: np.random.Generator) -> Parts:
    """Divide rows at random and keep the rows of a group together.

    The sizes are as close to those of `split_rows` as whole groups allow. The order of rows within
    a part is random.

    Parameters
    ----------
    groups : ndarray of shape (rows,)
        Group of each row.
    rng : numpy.random.Generator
        Random generator.

    Returns
    -------
    Parts
        Row numbers of the three parts.

    Examples
    --------
    >>> parts = split_groups(np.repeat(np.arange(20), 5), np.random.default_rng(0))
    >>> [len(part) for part in parts]
    [80, 10, 10]
    """
    names, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = rng.permutation(len(names))
    rows_up_to = np.cumsum(sizes[order])
    n_rows = len(groups)
    n_test = _nearest(rows_up_to, n_rows // 10)
    n_validation = _nearest(rows_up_to[n_test:], n_rows // 10 + (n_rows - n_rows // 10) // 10)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    row_rank = rank[group]
    rows = rng.permutation(n_rows)
    shuffled = row_rank[rows]
    return Parts(
        train=rows[shuffled >= n_test + n_validation],
        validation=rows[(shuffled >= n_test) & (shuffled < n_test + n_validation)],
        test=rows[shuffled < n_test],
    )


def draw_validation(
    n_rows: int, n_validation: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Divide rows at random into training and validation rows, if the test part is given.

    Parameters
    ----------
    n_rows : int
        Rows to divide.
    n_validation : int
        Rows of the validation part.
    rng : numpy.random.Generator
        Random generator.

    Returns
    -------
    train : ndarray
        Row numbers of the training part.
    validation : ndarray
        Row numbers of the validation part.

    Examples
    --------
    >>> train, validation = draw_validation(10, 3, np.random.default_rng(0))
    >>> len(train), len(validation)
    (7, 3)
    """
    parts = _cut(rng.permutation(n_rows), n_validation, 0)
    return parts.train, parts.validation


def _cut(order: Indices, n_validation: int, n_test: int) -> Parts:
    held_out = n_test + n_validation
    return Parts(order[held_out:], order[n_test:held_out], order[:n_test])


def _nearest(rows_up_to: Indices, target: int) -> int:
    """Return how many leading groups, at least one, have a total closest to `target` rows."""
    return int(np.abs(rows_up_to - target).argmin()) + 1
