"""Warnings that count the rows whose estimates did not converge, by the reason why."""

import numpy as np

from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.density.diagnostics import LARGEST_LOG_DENSITY, SMALLEST_ESS, reliable_k
from roundtrip.density.mean import MeanDensity
from roundtrip.density.method import Method
from roundtrip.density.probability import ProbabilityEstimate
from roundtrip.density.result import DensityEstimate
from roundtrip.exceptions import DensityWarning, warn_user


def warn_of_mean(result: MeanDensity, tol: float) -> None:
    """Issue one warning about a mean that did not converge."""
    reasons = []
    if not result.std_error <= tol:
        reasons.append(f"the standard error of the mean is {result.std_error:.2g}, above {tol:g}")
    if result.failed_rows:
        reasons.append(
            f"{result.failed_rows} of {result.rows} rows did not converge within "
            f"{DEFAULT_EVALUATIONS} evaluations of G"
        )
    warn_user("; ".join(reasons) + ".", DensityWarning)


def warn_of_failures(result: DensityEstimate, method: Method) -> None:
    """Issue one warning that counts the rows by the reason why they did not converge."""
    failed = ~result.converged
    if not failed.any():
        return
    wide = failed & ~(result.std_error <= method.tol)
    reliable = reliable_k(int(result.n_evaluations.max()))
    unreliable = failed & ~wide & ~((result.pareto_k <= reliable) & (result.ess >= SMALLEST_ESS))
    huge = failed & ~wide & ~unreliable & ~(np.abs(result.log_density) <= LARGEST_LOG_DENSITY)
    unconfirmed = failed & ~wide & ~unreliable & ~huge
    reasons = {
        f"have a standard error above {method.tol:g}": wide,
        "have weights with too heavy a tail for a reliable standard error (pareto_k)": unreliable,
        "have a log density beyond the digits of float64": huge,
        "are unusual, and a second estimate disagreed or had too few evaluations left": unconfirmed,
    }
    listed = ", ".join(f"{int(rows.sum())} {text}" for text, rows in reasons.items() if rows.any())
    warn_user(
        f"{int(failed.sum())} of {len(failed)} rows did not converge within "
        f"{method.max_evaluations} evaluations of G: {listed}. `converged` is False for them. A "
        "larger max_evaluations may help, or a larger tol if only the standard error is too large.",
        DensityWarning,
    )


def warn_of_probabilities(result: ProbabilityEstimate, tol: float) -> None:
    """Issue one warning that counts the probabilities that did not converge."""
    failed = ~result.converged & (result.probability > 0)
    if failed.any():
        warn_user(
            f"{int(failed.sum())} of {len(failed)} probabilities did not converge: their standard "
            f"error is above {tol:g} of the probability, or not reliable (pareto_k).",
            DensityWarning,
        )
