"""p-values by rank: how odd a score is among scores of rows that are known to be usual."""

import numpy as np
from scipy.stats import false_discovery_control

from roundtrip.parameters import check_number


def conformal_p_value(scores: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Share of `usual` scores, sorted, that are as low as each of `scores`, counting itself.

    If a row comes from where the usual ones come from, its p-value is at most u with a probability
    of at most u, whatever the scores mean.

    >>> conformal_p_value(np.array([-9.0, 0.5]), np.array([0.0, 1.0, 2.0]))
    array([0.25, 0.5 ])
    """
    return (1 + np.searchsorted(usual, scores, side="right")) / (1 + len(usual))


def discovered(p_values: np.ndarray, rate: float) -> np.ndarray:
    """Which rows can be named if a share `rate` of those named may be wrong, `(rows,)` of bool.

    >>> discovered(np.array([0.001, 0.9, 0.04]), rate=0.1).tolist()
    [True, False, True]
    """
    rate = check_number("rate", rate, above=0, below=1)
    return false_discovery_control(p_values) <= rate
