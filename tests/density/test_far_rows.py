"""Certificates far from the data: two scoring seeds agree within their standard errors; minutes."""

import functools
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from roundtrip import DensityWarning, Roundtrip
from roundtrip.density.fitted import FittedDensity

MOST_ERRORS = 6.0
"""Standard errors of a difference that certified estimates may be apart ..."""

LEAST_NATS = 0.5
"""... unless they are apart by less than this."""

OTHER_SEED = 12345


@dataclass(frozen=True)
class Agreement:
    """How rows fared that were scored with two seeds."""

    rows: int
    certified: int
    disagreeing: int
    largest: float

    def __str__(self) -> str:
        return (
            f"{self.rows} rows, {self.certified} certified by both seeds, {self.disagreeing} apart "
            f"by more than {MOST_ERRORS:g} standard errors and {LEAST_NATS:g} nats, the largest by "
            f"{self.largest:.2f} nats"
        )


def agreement(est: Roundtrip, X: np.ndarray) -> Agreement:
    fitted = est.fitted_
    est_again = FittedDensity(fitted.model, fitted.schema, OTHER_SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        first = est.density(X)
        est.fitted_ = est_again
        try:
            second = est.density(X)
        finally:
            est.fitted_ = fitted
    both = first.converged & second.converged
    apart = np.abs(first.log_density - second.log_density)
    error = np.hypot(first.std_error, second.std_error)
    wrong = both & (apart > MOST_ERRORS * error) & (apart > LEAST_NATS)
    largest = float(apart[wrong].max()) if wrong.any() else 0.0
    return Agreement(len(X), int(both.sum()), int(wrong.sum()), largest)


def directions(rows: int, dim: int, seed: int) -> np.ndarray:
    normal = np.random.default_rng(seed).normal(size=(rows, dim))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


@functools.cache
def gaussian_fit() -> tuple[Roundtrip, np.ndarray]:
    """A default fit to 3,000 rows of a 5-D Gaussian, and the factor of its covariance."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(5, 5))
    return Roundtrip(random_state=0).fit(rng.normal(size=(3000, 5)) @ factor.T), factor


def gaussian_rows(distance: float) -> np.ndarray:
    """160 rows at a Mahalanobis distance from the middle."""
    _, factor = gaussian_fit()
    return distance * directions(160, 5, seed=int(distance)) @ factor.T


@functools.cache
def mixture_fit() -> tuple[Roundtrip, np.ndarray]:
    """A default fit to 3,000 rows of three Gaussians in the plane, and their rows."""
    rng = np.random.default_rng(1)
    modes = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    X = modes[rng.integers(3, size=3000)] + rng.normal(size=(3000, 2)) * 0.5
    return Roundtrip(random_state=0).fit(X), X


def mixture_rows() -> np.ndarray:
    """1,500 rows 2 to 5 standard deviations of all rows away from their middle."""
    _, X = mixture_fit()
    radius = np.random.default_rng(2).uniform(2, 5, size=(1500, 1))
    return X.mean(axis=0) + radius * X.std(axis=0) * directions(1500, 2, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("distance", [10.0, 20.0, 50.0])
def test_certified_rows_far_from_a_gaussian_do_not_depend_on_the_seed(distance):
    est, _ = gaussian_fit()
    outcome = agreement(est, gaussian_rows(distance))
    assert outcome.disagreeing == 0, f"distance {distance:g}: {outcome}"


@pytest.mark.slow
def test_certified_rows_around_three_modes_do_not_depend_on_the_seed():
    est, _ = mixture_fit()
    outcome = agreement(est, mixture_rows())
    assert outcome.disagreeing == 0, str(outcome)
