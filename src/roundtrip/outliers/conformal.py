"""p-values by the rank of a score among those of reference rows."""

import math

import numpy as np
from scipy.stats import false_discovery_control

from roundtrip.parameters import check_number

START, END, CALLED = 0.2, 0.02, 0.0015
"""Shares of scores below the start and the end of the tail, and below the score that
`calling_score` gives if the tail is exponential."""

SHORTEST = 1.0
"""Least mean length of that tail, in the units of `Tails.lengths`; scores of a few held-out rows,
or of equal ones, have no tail of their own."""

TAIL = 0.1
"""Lowest share of the scores above the fence, from which the tail is estimated."""

TIE = 1e-6
"""Scores closer than this, in nats, count as equal, because the scores of equal rows differ in the
last digits between processors. If many rows are equal, broken ties make p-values far too small."""

LEAST_FALL = 1.2
"""Least fall of the log density of scores, in nats, from the start of the tail to the fence."""

FENCE = 2.5
"""Distance of the fence from the lower quartile of scores, in interquartile ranges."""


def fence(scores: np.ndarray) -> float:
    """Score below which rows are clear outliers.

    >>> fence(np.arange(5.0))
    -4.0
    """
    lowest, lower, upper = np.quantile(scores, [0.05, 0.25, 0.75])
    if lower == upper:  # most rows score the same, which does not make the others outliers
        lower = lowest
    return float(lower - FENCE * (upper - lower))


def calling_score(scores: np.ndarray) -> float:
    """Score below which a usual row hardly ever scores, from the scores of held-out rows.

    An exponential tail beyond the lowest fifth of the scores is extrapolated. Its length is
    measured without the very lowest scores, which may be those of outliers.

    >>> usual = np.log(np.random.default_rng(0).random(5000))
    >>> round(float((usual < calling_score(usual)).mean()), 3)
    0.002
    """
    start, end = np.quantile(scores, [START, END])
    beyond = start - np.clip(scores[scores <= start], end, None)
    # Cut off at `end`, the mean excess is this share of that of the whole tail.
    mean = max(beyond.mean() / (1 - END / START), SHORTEST)
    return float(start - mean * np.log(START / CALLED) - TIE)


def conformal_p_value(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """(1 + number of reference scores at most as high as each score) / (1 + reference scores).

    If a row comes from the same distribution as the reference, its p-value is at most u with a
    probability of at most u, whatever the scores are.

    Parameters
    ----------
    scores : numpy.ndarray
        `(rows,)`.
    reference : numpy.ndarray
        `(reference rows,)`, sorted.

    Returns
    -------
    numpy.ndarray
        `(rows,)`, p-values.

    Examples
    --------
    >>> conformal_p_value(np.array([-9.0, 0.5]), np.array([0.0, 1.0, 2.0]))
    array([0.25, 0.5 ])
    """
    as_low = np.searchsorted(reference, scores + TIE, side="right")
    return (1 + as_low) / (1 + len(reference))


def without_outliers(scores: np.ndarray, fence: float) -> np.ndarray:
    """Replace the scores below `fence` by those expected there without outliers.

    A few usual rows score below the fence, too. Without them each such row would have the smallest
    p-value. Their number and scores are those of an exponential tail, fitted to the lowest tenth of
    the scores above the fence.

    Parameters
    ----------
    scores : numpy.ndarray
        `(rows,)`, sorted.
    fence : float
        Score below which rows are taken as outliers.

    Returns
    -------
    numpy.ndarray
        Sorted scores.

    Examples
    --------
    >>> usual = np.sort(-np.random.default_rng(0).exponential(size=1000))
    >>> outliers = np.full(200, -50.0)
    >>> tail = without_outliers(np.concatenate([outliers, usual]), fence=-4.0)
    >>> bool((tail > -15).all()), bool(5 < (tail < -4).sum() < 40)
    (True, True)
    """
    kept = scores[scores >= fence]
    start = np.quantile(kept, TAIL)
    excess, reach = start - kept[kept <= start], start - fence
    if reach <= 0:  # equal scores have no tail
        return kept
    # The mean of an exponential truncated at the fence is smaller than the mean of the exponential
    # by reach / (exp(reach / mean) - 1): a fixed-point iteration solves for the latter. A tail that
    # hardly falls up to the fence says nothing about what lies below: its mean is bounded.
    mean = max(excess.mean(), reach / 100)
    for _ in range(100):
        longer = excess.mean() + reach / np.expm1(reach / mean)
        mean = np.clip(longer, reach / 100, reach / LEAST_FALL)
    count = round(len(excess) / np.expm1(reach / mean))
    steps = np.arange(count, 0, -1) - 0.5
    return np.concatenate([fence + mean * np.log(steps / max(count, 1))[::-1], kept])


def discovered(p_values: np.ndarray, rate: float) -> np.ndarray:
    """Rows found by Benjamini and Hochberg's procedure at a false-discovery rate, `(rows,)`.

    >>> discovered(np.array([0.001, 0.9, 0.04]), rate=0.1).tolist()
    [True, False, True]
    """
    rate = check_number("rate", rate, above=0, below=1)
    return false_discovery_control(p_values) <= rate


def fewest_references(rows: int, rate: float) -> int:
    """Reference rows without which not even one of so many rows can be found at this rate.

    >>> fewest_references(200, rate=0.1)
    1999
    """
    return math.ceil(rows / rate) - 1
