"""`ClassPosterior`: p(y | x) by Bayes' rule from densities p(x | y), with error bars."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logsumexp

NO_DOUBT = 1e-3
"""Classes below this probability do not need a density that has converged."""

DOUBT_ERRORS = 3.0
"""Standard errors added to a log density before its class is compared with `NO_DOUBT`."""


@dataclass(frozen=True)
class ClassPosterior:
    """p(y | x) of rows with error bars.

    Attributes
    ----------
    probability : numpy.ndarray
        `(rows, classes)`, in the order of `RoundtripClassifier.classes_`.
    std_error : numpy.ndarray
        `(rows, classes)`, standard errors of the probabilities, from those of the densities.
    log_density : numpy.ndarray
        `(rows, classes)`, log p(x | y) in the units of X: a rough estimate for classes 12 nats
        below the best one, and for a class 12 nats above all others. NaN for classes with a prior
        of 0 after adversarial training, for which there are no rough estimates.
    log_density_error : numpy.ndarray
        `(rows, classes)`, standard errors of the log densities; NaN for rough estimates.
    converged : numpy.ndarray
        `(rows,)`, whether the probabilities are reliable: the density of each class has converged,
        is a rough estimate, or gives the class less than 0.001 even if it is three standard errors
        higher, or as high as the rough estimate. That classes 12 nats below the best one by a
        rough estimate do not matter is an assumption, as a rough estimate may be too low. It is
        made for rows that the encoder knows; for others the densities of all classes must converge.
    """

    probability: np.ndarray
    std_error: np.ndarray
    log_density: np.ndarray
    log_density_error: np.ndarray
    converged: np.ndarray

    @classmethod
    def of(
        cls,
        log_density: np.ndarray,
        error: np.ndarray,
        converged: np.ndarray,
        *,
        rough: np.ndarray,
        log_priors: np.ndarray,
        trusted: np.ndarray,
    ) -> Self:
        """Apply Bayes' rule to densities; those are `(rows, classes)`.

        Parameters
        ----------
        log_density : numpy.ndarray
            Log p(x | y), precise or rough.
        error : numpy.ndarray
            Standard errors of the precise estimates, NaN for rough ones.
        converged : numpy.ndarray
            Whether estimates have converged; True for rough ones.
        rough : numpy.ndarray
            Rough estimates of all classes; -inf if there are none.
        log_priors : numpy.ndarray
            `(classes,)`, log p(y).
        trusted : numpy.ndarray
            `(rows,)` bool, whether a class that is far behind may have a density that has not
            converged.

        Examples
        --------
        >>> half, zero, yes = np.log([0.5, 0.5]), np.zeros((1, 2)), np.ones((1, 2), dtype=bool)
        >>> posterior = ClassPosterior.of(
        ...     np.log([[3.0, 1.0]]), zero, yes, rough=zero, log_priors=half, trusted=yes[:, 0])
        >>> posterior.probability.round(2)
        array([[0.75, 0.25]])
        """
        joint = log_joint(log_density, log_priors)
        log_total = logsumexp(joint, axis=1, keepdims=True)
        probability = np.exp(joint - log_total)
        # Delta method: dp_k = p_k (dl_k - Σ_j p_j dl_j), errors of different classes independent.
        spread = np.nan_to_num(error)  # rough estimates count as exact
        others = (probability * spread) ** 2
        total = others.sum(axis=1, keepdims=True) - others
        variance = probability**2 * (((1 - probability) * spread) ** 2 + total)
        # An estimate that has not converged is more often too low than too high.
        highest = np.maximum(rough, np.nan_to_num(log_density) + DOUBT_ERRORS * spread)
        negligible = highest + log_priors < log_total + np.log(NO_DOUBT)
        negligible &= trusted[:, None] | np.isneginf(log_priors)
        reliable = (converged | negligible).all(axis=1)
        return cls(probability, np.sqrt(variance), log_density, error, reliable)


def log_joint(log_density: np.ndarray, log_priors: np.ndarray) -> np.ndarray:
    """log p(x, y), `(rows, classes)`; -inf for classes with a prior of 0, whatever their density.

    A row that has density 0 in float64 given each class says nothing of its class: log p(y).

    >>> log_joint(np.array([[np.nan, -1.0]]), np.array([-np.inf, 0.0]))
    array([[-inf,  -1.]])
    >>> log_joint(np.array([[-np.inf, -np.inf]]), np.array([-1.0, -0.5]))
    array([[-1. , -0.5]])
    """
    joint = np.where(np.isneginf(log_priors), -np.inf, log_density + log_priors)
    return np.where(np.isneginf(joint).all(axis=1, keepdims=True), log_priors, joint)
