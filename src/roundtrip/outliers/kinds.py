"""The kind of oddity of a row: outside, in a hole, a sparse place or a broken combination."""

import numpy as np

OUTSIDE = "outside"
HOLE = "in a hole"
SPARSE = "sparse place"
BROKEN = "broken combination"

FAR_OUT = 2.8
"""Compressed Gaussian units of a value that its column hardly has: four standard deviations."""

OUTER, INNER = np.log(200), np.log(4 / 3)
"""Lengths under wide noise of rows outside of the data, and of rows in its midst."""


def kinds_of_rows(lengths: np.ndarray, gaussian_values: np.ndarray) -> tuple[str, ...]:
    """Name the kind of oddity of each row.

    Parameters
    ----------
    lengths : numpy.ndarray
        `(rows, 5)`, as of `EveryKind.lengths`.
    gaussian_values : numpy.ndarray
        `(rows, features)`, each column Gaussian among the rows of `fit`.

    Examples
    --------
    >>> kinds_of_rows(np.array([[0, 9, 9, 2, 2], [1, 2, 3, 8, 2]]), np.zeros((2, 2)))
    ('in a hole', 'broken combination')
    """
    wide, neighbours, density, cells, local_cells = lengths.T
    outside = (np.abs(gaussian_values).max(axis=1) > FAR_OUT) | (wide > OUTER)
    cells = np.maximum(cells, local_cells)
    conditions = [outside, wide < INNER, cells >= np.maximum(neighbours, density)]
    chosen = np.select(conditions, [OUTSIDE, HOLE, BROKEN], default=SPARSE)
    return tuple(str(kind) for kind in chosen)
