"""What a density estimate consists of."""

import math
from dataclasses import dataclass, fields, replace

import numpy as np
import pandas as pd


@dataclass(frozen=True, repr=False)
class DensityEstimate:
    """Log densities of a table's rows with what is known about their error; one entry a row.

    Attributes
    ----------
    log_density : (rows,) float64, natural logarithm.
    std_error : (rows,) float64, estimated standard error of `log_density` from the spread of the
        importance weights; NaN where the method does not know its error (Laplace).
    ess : (rows,) float64, effective number of draws; NaN for Laplace.
    n_evaluations : (rows,) int64, evaluations of G spent on the row, without those shared by all
        rows and without the climb of rows that the encoder does not know (120 gradients).
    pareto_k : (rows,) float64, shape of the tail of the importance weights: above 0.7 (or
        1 - 1/log10(draws) if that is less) neither the estimate nor its standard error can be
        trusted. NaN for Laplace.
    converged : (rows,) bool, whether the error bar can be trusted and, for the adaptive method,
        is within the tolerance. Never for Laplace.
    method : name of the method.
    index : row labels for `to_frame`, or None: 0, 1, ...

    >>> import numpy as np
    >>> est = DensityEstimate(np.array([-1.0, -3.0]), np.array([0.1, 0.2]), np.array([50.0, 9.0]),
    ...                       np.array([200, 200]), np.array([0.1, 0.9]), np.array([True, False]),
    ...                       "importance")
    >>> est.shifted(2.0).log_density
    array([ 1., -1.])
    >>> print(est.summary())
    2 rows by importance: mean log density -2.0000 ± 1.0000 (over rows)
    standard error of a row: median 0.15, largest 0.2
    evaluations of G a row: median 200, most 200
    1 row did not converge
    >>> est.to_frame().shape
    (2, 6)
    """

    log_density: np.ndarray
    std_error: np.ndarray
    ess: np.ndarray
    n_evaluations: np.ndarray
    pareto_k: np.ndarray
    converged: np.ndarray
    method: str
    index: pd.Index | None = None

    def shifted(self, log_factor: float) -> "DensityEstimate":
        """The same estimate with every density multiplied by `exp(log_factor)`."""
        return replace(self, log_density=self.log_density + log_factor)

    def taken(self, rows: np.ndarray) -> "DensityEstimate":
        """The estimate of some of the rows, in that order."""
        values = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(self)
            if field.name not in ("method", "index")
        }
        return replace(self, **values, index=None if self.index is None else self.index[rows])

    def to_frame(self) -> pd.DataFrame:
        """One row an estimate, one column for each attribute but `method` and `index`."""
        names = [field.name for field in fields(self) if field.name not in ("method", "index")]
        return pd.DataFrame({name: getattr(self, name) for name in names}, index=self.index)

    def __repr__(self) -> str:
        return f"<DensityEstimate: {self.summary()}>"

    def summary(self) -> str:
        """A few lines for people."""
        rows = len(self.log_density)
        lines = [
            f"{rows} row{'s' * (rows != 1)} by {self.method}: mean log density "
            f"{_readable(self.log_density.mean())}"
        ]
        if rows > 1:
            # Scaled first: the squares of very low densities overflow.
            largest = max(np.abs(self.log_density).max(), 1.0)
            spread = largest * (self.log_density / largest).std(ddof=1) / math.sqrt(rows)
            lines[0] += f" ± {_readable(spread)} (over rows)"
        if not np.isnan(self.std_error).all():
            lines.append(
                f"standard error of a row: median {np.nanmedian(self.std_error):.2g}, "
                f"largest {np.nanmax(self.std_error):.2g}"
            )
        lines.append(
            f"evaluations of G a row: median {np.median(self.n_evaluations):.0f}, "
            f"most {self.n_evaluations.max()}"
        )
        failed = int((~self.converged).sum())
        if self.method == "laplace":
            lines.append("the error of the Laplace approximation is not known")
        elif failed:
            lines.append(f"{failed} row{'s' * (failed != 1)} did not converge")
        return "\n".join(lines)


def _readable(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1e9 else f"{value:.4g}"
