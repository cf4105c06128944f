"""`MeanEstimate`: the mean log density of many rows, for which single rows need little precision.

Errors of rows are independent, so that that of their mean falls with the square root of their
number. What remains is the bias of a logarithm: if an estimate of p(x) has a standard error s in
nats, its logarithm is too low by s²/2 on average, which is added.
"""

import math
from dataclasses import dataclass

import numpy as np

from roundtrip.density.result import DensityEstimate

LOOSEST = 0.2
"""Largest standard error of a row, in nats, up to which the bias of the logarithm is s²/2."""


@dataclass(frozen=True)
class MeanEstimate:
    """The mean log density of rows, with two errors.

    Attributes
    ----------
    log_density : float
        Mean log density in nats.
    std_error : float
        Standard error of the integration: how far `log_density` may be from the mean log density of
        the model for the same rows.
    std_error_of_rows : float
        Standard error of the choice of rows: how much the mean varies between tables of as many
        rows. NaN for one row.
    n_rows, n_evaluations : int
        Number of rows, and of evaluations of G for all of them.
    converged : float
        Share of the rows whose own error is reliable.

    Examples
    --------
    >>> import numpy as np
    >>> rows = DensityEstimate(np.array([-1.0, -3.0]), np.array([0.1, 0.1]), np.array([50.0, 50.0]),
    ...                        np.array([65, 65]), np.array([0.1, 0.2]), np.array([True, True]),
    ...                        "adaptive")
    >>> mean = MeanEstimate.of(rows)
    >>> round(mean.log_density, 6), round(mean.std_error, 3), mean.n_evaluations
    (-1.995, 0.071, 130)
    """

    log_density: float
    std_error: float
    std_error_of_rows: float
    n_rows: int
    n_evaluations: int
    converged: float

    @classmethod
    def of(cls, rows: DensityEstimate) -> "MeanEstimate":
        """Return the mean over rows."""
        n = len(rows.log_density)
        bias = np.minimum(rows.std_error, LOOSEST) ** 2 / 2
        values = rows.log_density + np.nan_to_num(bias)
        return cls(
            log_density=float(values.mean()),
            std_error=float(np.sqrt(np.square(rows.std_error).sum()) / n),
            std_error_of_rows=float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan,
            n_rows=n,
            n_evaluations=int(rows.n_evaluations.sum()),
            converged=float(rows.converged.mean()),
        )


def row_tolerance(tol: float, n_rows: int) -> float:
    """Return the standard error of each row at which that of the mean is `tol`.

    Examples
    --------
    >>> row_tolerance(0.01, 100), row_tolerance(0.01, 4500)
    (0.1, 0.2)
    """
    return min(LOOSEST, tol * math.sqrt(n_rows))
