"""`DensityEstimate`: log densities with standard errors and diagnostics."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True, repr=False)
class DensityEstimate:
    """Log densities of rows with standard errors and diagnostics, one entry per row.

    Attributes
    ----------
    log_density : numpy.ndarray
        Natural logarithms of densities, `(rows,)` float64.
    std_error : numpy.ndarray
        Standard errors of `log_density`, estimated from the importance weights, `(rows,)`. NaN for
        Laplace, whose error is unknown.
    ess : numpy.ndarray
        Effective sample sizes, `(rows,)`; NaN for Laplace.
    n_evaluations : numpy.ndarray
        Evaluations of G per row, `(rows,)` int64, where a gradient counts as three. Not counted are
        those that all rows share.
    pareto_k : numpy.ndarray
        Tail shapes of the importance weights, `(rows,)`. Above 0.7, or 1 - 1/log10(draws) if that
        is less, the estimate and its standard error are unreliable. NaN for Laplace.
    converged : numpy.ndarray
        Whether the standard error is reliable and, for the adaptive method, within the tolerance;
        `(rows,)` bool. False for Laplace.
    method : str
        Name of the method.
    index : pandas.Index or None
        Row labels for `to_frame`. With None rows are numbered from 0.

    Examples
    --------
    >>> import numpy as np
    >>> est = DensityEstimate(np.array([-1.0, -3.0]), np.array([0.1, 0.2]), np.array([50.0, 9.0]),
    ...                       np.array([200, 200]), np.array([0.1, 0.9]), np.array([True, False]),
    ...                       "importance")
    >>> est.shifted(2.0).log_density
    array([ 1., -1.])
    >>> print(est.summary())
    2 rows by importance: mean log density -2.0000 ± 1.0000 (over rows)
    standard error per row: median 0.15, largest 0.2
    evaluations of G per row: median 200, most 200
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

    def given(self, part: "DensityEstimate") -> "DensityEstimate":
        """Return the conditional densities p(x_A | x_B) = p(x_A, x_B) / p(x_B).

        Parameters
        ----------
        part : DensityEstimate
            Estimates of p(x_B) by draws of their own, while these are of p(x_A, x_B).
        """
        return replace(
            self,
            log_density=self.log_density - part.log_density,
            std_error=np.hypot(self.std_error, part.std_error),
            ess=np.minimum(self.ess, part.ess),
            pareto_k=np.fmax(self.pareto_k, part.pareto_k),
            converged=self.converged & part.converged,
            n_evaluations=self.n_evaluations + part.n_evaluations,
        )

    def spread_over(self, rows: np.ndarray) -> "DensityEstimate":
        """Return these estimates at the places of a mask; at the others the density is 1.

        Parameters
        ----------
        rows : numpy.ndarray of shape (rows,)
            Which rows the estimates are of.
        """
        exact = {"log_density": 0.0, "std_error": 0.0, "ess": np.inf, "pareto_k": -np.inf}
        columns: dict[str, Any] = {}
        for name, values in self._by_row().items():
            fill = {"converged": True, "n_evaluations": 0, **exact}[name]
            columns[name] = np.full(len(rows), fill, dtype=values.dtype)
            columns[name][rows] = values
        return DensityEstimate(**columns, method=self.method)

    def shifted(self, log_factor: float | np.ndarray) -> "DensityEstimate":
        """Return the estimate with densities multiplied by `exp(log_factor)`, one or per row."""
        return replace(self, log_density=self.log_density + log_factor)

    def taken(self, rows: np.ndarray) -> "DensityEstimate":
        """Return the estimate of some of the rows, in the given order."""
        values = {name: each[rows] for name, each in self._by_row().items()}
        return replace(self, **values, index=None if self.index is None else self.index[rows])

    @classmethod
    def joined(cls, parts: "Sequence[DensityEstimate]") -> "DensityEstimate":
        """Return the estimates of all rows, one after the other."""
        by_row = [part._by_row() for part in parts]
        columns: dict[str, Any] = {
            name: np.concatenate([each[name] for each in by_row]) for name in by_row[0]
        }
        return cls(**columns, method=parts[0].method)

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with a column for each attribute except `method` and `index`."""
        return pd.DataFrame(self._by_row(), index=self.index)

    def _by_row(self) -> dict[str, np.ndarray]:
        names = [field.name for field in fields(self) if field.name not in ("method", "index")]
        return {name: getattr(self, name) for name in names}

    def marked(self, unseen_level: np.ndarray) -> "DensityEstimate":
        """Return the estimate with marks of rows that have a level which `fit` has not seen.

        Parameters
        ----------
        unseen_level : numpy.ndarray of shape (rows,)
            Whether a row has one. If none has, the estimate stays as it is.
        """
        if not unseen_level.any():
            return self
        return MarkedEstimate(**vars(self), unseen_level=unseen_level)

    def __repr__(self) -> str:
        return f"<DensityEstimate: {self.summary()}>"

    def summary(self) -> str:
        """Return a summary in a few lines of text."""
        rows = len(self.log_density)
        lines = [
            f"{rows} row{'s' * (rows != 1)} by {self.method}: mean log density "
            f"{_readable(self.log_density.mean())}"
        ]
        if rows > 1:
            # Scaled first, because the squares of very low log densities overflow.
            largest = max(np.abs(self.log_density).max(), 1.0)
            spread = largest * (self.log_density / largest).std(ddof=1) / math.sqrt(rows)
            lines[0] += f" ± {_readable(spread)} (over rows)"
        if not np.isnan(self.std_error).all():
            lines.append(
                f"standard error per row: median {np.nanmedian(self.std_error):.2g}, "
                f"largest {np.nanmax(self.std_error):.2g}"
            )
        lines.append(
            f"evaluations of G per row: median {np.median(self.n_evaluations):.0f}, "
            f"most {self.n_evaluations.max()}"
        )
        failed = int((~self.converged).sum())
        if self.method == "laplace":
            lines.append("the error of the Laplace approximation is not known")
        elif failed:
            lines.append(f"{failed} row{'s' * (failed != 1)} did not converge")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False, kw_only=True)
class MarkedEstimate(DensityEstimate):
    """Log densities of rows of which some have a level of a category that `fit` has not seen.

    Attributes
    ----------
    unseen_level : numpy.ndarray
        Whether a row has one, `(rows,)` bool; a column of `to_frame`.
    """

    unseen_level: np.ndarray

    def summary(self) -> str:
        """Return a summary in a few lines of text."""
        count = int(self.unseen_level.sum())
        has = "row has" if count == 1 else "rows have"
        return f"{super().summary()}\n{count} {has} a level that fit has not seen"


def _readable(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1e9 else f"{value:.4g}"
