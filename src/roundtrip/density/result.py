"""What a density estimate consists of."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class DensityEstimate:
    """Log densities of a table's rows with what is known about their error; one entry a row.

    Attributes
    ----------
    log_density : (rows,) float64, natural logarithm.
    std_error : (rows,) float64, estimated standard error of `log_density` from the spread of the
        importance weights; NaN where the method does not know its error (Laplace).
    ess : (rows,) float64, effective number of draws; NaN for Laplace.
    n_evaluations : (rows,) int64, evaluations of G spent on the row.
    method : name of the method.

    >>> import numpy as np
    >>> est = DensityEstimate(np.array([-1.0]), np.array([0.1]), np.array([50.0]),
    ...                       np.array([200]), "importance")
    >>> est.shifted(2.0).log_density
    array([1.])
    """

    log_density: np.ndarray
    std_error: np.ndarray
    ess: np.ndarray
    n_evaluations: np.ndarray
    method: str

    def shifted(self, log_factor: float) -> "DensityEstimate":
        """The same estimate with every density multiplied by `exp(log_factor)`."""
        return replace(self, log_density=self.log_density + log_factor)
