"""Gaussian mixture with the number of components chosen on validation rows."""

import copy
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from roundtrip.baselines.base import DensityBaseline
from roundtrip.baselines.budget import Budget
from roundtrip.parameters import check_choice, check_integer, check_number, is_sequence
from roundtrip.training.em import MixtureByEM

DEFAULT_COMPONENTS = (1, 2, 4, 8, 16, 32, 64, 128)

STEPS_PER_CALL = 5
"""EM steps between two checks of the time limit; each check costs as much as half a step."""


class GaussianMixtureBaseline(DensityBaseline):
    """scikit-learn's Gaussian mixture; validation rows choose the number of components.

    Parameters
    ----------
    n_components : int or sequence of int, default=(1, 2, 4, 8, 16, 32, 64, 128)
        Numbers to try, in this order. Numbers above the number of training rows are skipped, and
        trying ends when `max_time` leaves no time for the next number.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Kind of covariance matrices.
    reg_covar : float, default=1e-6
        Added to the variances, in standardised units.
    max_iter : int, default=200
        Largest number of EM steps for each number of components.
    random_state : int, RandomState or None, default=None
        Seed of the split and of the initialisation.

    Attributes
    ----------
    mixture_ : sklearn.mixture.GaussianMixture
        The chosen mixture, in standardised units.
    n_components_ : int
        Its number of components.
    n_iter_ : int
        Its number of EM steps.
    validation_log_likelihood_ : float
        Mean over the validation rows, in the user's units.
    history_ : dict of lists
        "n_components", "validation_log_likelihood" and "seconds" (since the start), with one entry
        per number of components tried.

    Examples
    --------
    >>> import numpy as np
    >>> from roundtrip.baselines import GaussianMixtureBaseline
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> est = GaussianMixtureBaseline(n_components=(1, 2), random_state=0).fit(X)
    >>> est.n_components_, est.score_samples(X[:3]).shape, est.sample(4).shape
    (1, (3,), (4, 2))
    """

    def __init__(
        self,
        n_components: Sequence[int] | int = DEFAULT_COMPONENTS,
        *,
        covariance_type: str = "full",
        reg_covar: float = 1e-6,
        max_iter: int = 200,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_settings(self) -> None:
        for number in self._numbers:
            check_integer("each of n_components", number, minimum=1)
        check_choice("covariance_type", self.covariance_type, ("full", "tied", "diag", "spherical"))
        check_number("reg_covar", self.reg_covar, above=0)
        check_integer("max_iter", self.max_iter, minimum=1)

    @property
    def _numbers(self) -> list[Any]:
        numbers: Any = self.n_components
        return list(numbers) if is_sequence(numbers) and len(numbers) > 0 else [numbers]

    def _fit(
        self,
        training: np.ndarray,
        validation: np.ndarray,
        *,
        budget: Budget,
        rng: np.random.RandomState,
    ) -> None:
        numbers = [int(number) for number in self._numbers if number <= len(training)]
        if not numbers:
            raise ValueError(
                f"each of n_components is above the number of training rows, {len(training)}"
            )
        seed = int(rng.randint(2**31 - 1))
        history: dict[str, list[float]] = {
            "n_components": [],
            "validation_log_likelihood": [],
            "seconds": [],
        }
        seconds_per_component = 0.0  # of the first call of EM, which can't be interrupted
        for number in numbers:
            if history["seconds"] and budget.left < seconds_per_component * number:
                break
            mixture, start = self._fit_one(number, training, seed, budget)
            seconds_per_component = start / number
            score = float(mixture.score(validation)) + self.scaling_.log_det
            if score > max(history["validation_log_likelihood"], default=-np.inf):
                best = mixture
            history["n_components"].append(number)
            history["validation_log_likelihood"].append(score)
            history["seconds"].append(budget.elapsed)
        self.mixture_ = best
        self.n_components_ = best.n_components
        self.n_iter_ = best.n_iter_
        self.validation_log_likelihood_ = max(history["validation_log_likelihood"])
        self.history_ = history

    def _fit_one(
        self, number: int, training: np.ndarray, seed: int, budget: Budget
    ) -> tuple[MixtureByEM, float]:
        """Fit a mixture; return it and the seconds of the first call (k-means and first steps)."""
        mixture = MixtureByEM(
            number,
            covariance_type=self.covariance_type,
            reg_covar=self.reg_covar,
            random_state=seed,
            warm_start=True,  # each call of fit resumes where the last one stopped
        )
        steps, first = 0, 0.0
        while True:
            start = time.perf_counter()
            mixture.max_iter = min(STEPS_PER_CALL, self.max_iter - steps)
            mixture.fit(training)
            seconds = time.perf_counter() - start
            first = first or seconds
            steps += mixture.n_iter_
            if mixture.has_settled or steps >= self.max_iter or budget.left < seconds:
                mixture.n_iter_ = steps  # the total of all calls
                return mixture, first

    def _log_density(self, rows: np.ndarray) -> np.ndarray:
        return self.mixture_.score_samples(rows)

    def _sample(self, n_samples: int, rng: np.random.RandomState) -> np.ndarray:
        mixture = copy.copy(self.mixture_)
        mixture.random_state = rng
        return rng.permutation(mixture.sample(n_samples)[0])  # sample sorts rows by component
