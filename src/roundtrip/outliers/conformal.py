"""p-values by rank: how odd a score is among those of other rows."""

import numpy as np
from scipy.stats import false_discovery_control

from roundtrip.parameters import check_number

TAIL = 0.1
"""Share of the scores that are not odd by whose fall the tail is judged."""

TIE = 1e-6
"""Nats: scores as close as this are equal, as equal rows on another processor need not score alike
to the last digit. Where many rows are alike, a broken tie would make p-values far too small."""

LEAST_FALL = 1.2
"""Nats by which the tail falls, at the least, from where it begins to the fence."""


FENCE = 2.5
"""Interquartile ranges below the lower quartile of scores where outliers begin."""


def fence(scores: np.ndarray) -> float:
    """The score below which rows are clearly odd."""
    lowest, lower, upper = np.quantile(scores, [0.05, 0.25, 0.75])
    if lower == upper:  # most rows are alike: the others are not odd for that
        lower = lowest
    return float(lower - FENCE * (upper - lower))


def conformal_p_value(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Share of `reference` scores, sorted, that are as low as each of `scores`, counting itself.

    If a row comes from where the reference comes from, its p-value is at most u with a probability
    of at most u, whatever the scores mean.

    >>> conformal_p_value(np.array([-9.0, 0.5]), np.array([0.0, 1.0, 2.0]))
    array([0.25, 0.5 ])
    """
    as_low = np.searchsorted(reference, scores + TIE, side="right")
    return (1 + as_low) / (1 + len(reference))


def without_outliers(scores: np.ndarray, fence: float) -> np.ndarray:
    """Sorted scores with what lies below `fence` replaced by what would if there were no outliers.

    Usual rows lie there, too; only to leave all of them out would give each the smallest p-value.
    The lowest tenth of the others suggests how many, and where: an exponential tail goes on.

    >>> usual = np.sort(-np.random.default_rng(0).exponential(size=1000))
    >>> outliers = np.full(200, -50.0)
    >>> tail = without_outliers(np.concatenate([outliers, usual]), fence=-4.0)
    >>> bool((tail > -15).all()), bool(5 < (tail < -4).sum() < 40)
    (True, True)
    """
    kept = scores[scores >= fence]
    start = np.quantile(kept, TAIL)
    excess, reach = start - kept[kept <= start], start - fence
    if reach <= 0:  # scores that are all alike have no tail
        return kept
    # The mean of an exponential that ends at the fence is shorter by the correction below; that of
    # a tail which hardly falls up to there tells nothing beyond.
    mean = max(excess.mean(), reach / 100)  # less would be no tail either
    for _ in range(100):
        longer = excess.mean() + reach / np.expm1(reach / mean)
        mean = np.clip(longer, reach / 100, reach / LEAST_FALL)
    count = round(len(excess) / np.expm1(reach / mean))
    steps = np.arange(count, 0, -1) - 0.5
    return np.concatenate([fence + mean * np.log(steps / max(count, 1))[::-1], kept])


def discovered(p_values: np.ndarray, rate: float) -> np.ndarray:
    """Which rows can be named if, on average, at most a share `rate` may be wrong, `(rows,)`.

    >>> discovered(np.array([0.001, 0.9, 0.04]), rate=0.1).tolist()
    [True, False, True]
    """
    rate = check_number("rate", rate, above=0, below=1)
    return false_discovery_control(p_values) <= rate
