"""p-values by rank: how odd a score is among those of other rows."""

import numpy as np
from scipy.stats import false_discovery_control

from roundtrip.parameters import check_number


def conformal_p_value(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Share of `reference` scores, sorted, that are as low as each of `scores`, counting itself.

    If a row comes from where the reference comes from, its p-value is at most u with a probability
    of at most u, whatever the scores mean.

    >>> conformal_p_value(np.array([-9.0, 0.5]), np.array([0.0, 1.0, 2.0]))
    array([0.25, 0.5 ])
    """
    return (1 + np.searchsorted(reference, scores, side="right")) / (1 + len(reference))


def discovered(p_values: np.ndarray, rate: float) -> np.ndarray:
    """Which rows can be named if, on average, a share `rate` of them may be wrong, `(rows,)`.

    >>> discovered(np.array([0.001, 0.9, 0.04]), rate=0.1).tolist()
    [True, False, True]
    """
    rate = check_number("rate", rate, above=0, below=1)
    return false_discovery_control(p_values) <= rate
