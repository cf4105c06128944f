"""Bins of the values of a column, for pictures."""

import math

import numpy as np

from roundtrip.data.rounding import Rounding


def bin_edges(rounding: Rounding, low: float, high: float, most: int) -> np.ndarray:
    """Return the edges of equal bins over a range; of rounded columns, each of whole steps.

    Parameters
    ----------
    rounding : Rounding
        How the column is rounded.
    low, high : float
        The range, in the user's units.
    most : int
        Largest number of bins.

    Returns
    -------
    numpy.ndarray
        `(bins + 1,)`, in the user's units.

    Examples
    --------
    >>> whole = Rounding(1.0, 1.0, 9, low=0.0, high=8.0, decimals=0)
    >>> bin_edges(whole, 2.0, 5.0, most=10).tolist()
    [1.5, 2.5, 3.5, 4.5, 5.5]
    >>> bin_edges(whole, 0.0, 8.0, most=4).tolist()
    [-0.5, 2.5, 5.5, 8.5]
    """
    if rounding.step == 0 or not rounding.complete:
        high = high if high > low else low + 1.0
        return np.linspace(low, high, most + 1)
    start, end = rounding.spread_range(low, high)
    steps = max(1, round((end - start) / rounding.step))
    width = math.ceil(steps / most)
    return start + rounding.step * width * np.arange(math.ceil(steps / width) + 1)
