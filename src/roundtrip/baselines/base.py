"""Base class of all baselines: checks, splitting, scaling and units."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from roundtrip.baselines.budget import Budget
from roundtrip.data.checks import checked_table
from roundtrip.data.libraries import as_frame, as_library
from roundtrip.data.scaling import Scaling
from roundtrip.parameters import check_integer, check_number, random_stream

VALIDATION_FRACTION = 0.1


class DensityBaseline(DensityMixin, BaseEstimator, ABC):
    """Base class of density estimators that work on standardised columns.

    Subclasses implement `_check_settings`, `_fit`, `_log_density` and `_sample` for standardised
    rows. This class converts rows, and adds the log|det| of the scaling to log densities.
    """

    random_state: int | np.random.RandomState | None
    validation_log_likelihood_: float
    history_: dict[str, list[float]]

    @abstractmethod
    def _check_settings(self) -> None:
        """Raise a `ValueError` that names the first parameter whose value is not allowed."""

    @abstractmethod
    def _fit(
        self,
        training: np.ndarray,
        validation: np.ndarray,
        *,
        budget: Budget,
        rng: np.random.RandomState,
    ) -> None:
        """Fit to standardised rows; set `validation_log_likelihood_` and `history_`."""

    @abstractmethod
    def _log_density(self, rows: np.ndarray) -> np.ndarray:
        """Return the log density of standardised rows in standardised units, `(rows,)` float64."""

    @abstractmethod
    def _sample(self, n_samples: int, rng: np.random.RandomState) -> np.ndarray:
        """Draw standardised rows, `(n_samples, features)` float64, in random order."""

    def fit(
        self, X: Any, y: Any = None, *, validation_data: Any = None, max_time: float | None = None
    ) -> Self:
        """Fit the density to the rows of `X`.

        Parameters
        ----------
        X : array-like of shape (rows, features)
            Training rows of numbers, without missing cells.
        y : object, default=None
            Ignored; present because scikit-learn passes it.
        validation_data : array-like of shape (rows, features) or None, default=None
            Rows that choose settings and stop training. None holds out a tenth of `X`, drawn with
            `random_state`.
        max_time : float or None, default=None
            Seconds for the whole fit, including validation; None is no limit. With a limit, the
            result also depends on the speed of the machine.

        Returns
        -------
        DensityBaseline
            The fitted estimator itself.
        """
        if max_time is not None:
            max_time = check_number("max_time", max_time, above=0)
        budget = Budget(max_time)
        self._check_settings()
        rng = random_stream(self.random_state)
        library, frame = as_frame(X)
        columns = None if frame is None else list(frame.columns)
        X = checked_table(self, X if frame is None else frame, ensure_min_samples=2)
        if validation_data is None:
            training, validation = _split(X, rng)
        else:
            training, validation = X, self._checked_validation(validation_data)
        self.columns_, self.library_ = columns, library
        self.scaling_ = Scaling.fit(training, "standard")
        self._fit(
            self.scaling_.apply(training),
            self.scaling_.apply(validation),
            budget=budget,
            rng=rng,
        )
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the log density of each row in the user's units.

        Parameters
        ----------
        X : array-like of shape (rows, features)
            Rows like those of `fit`.

        Returns
        -------
        numpy.ndarray
            `(rows,)` float64, in nats.
        """
        check_is_fitted(self)
        X = checked_table(self, X, reset=False)
        return self._log_density(self.scaling_.apply(X)) + self.scaling_.log_det

    def score(self, X: Any, y: Any = None) -> float:
        """Return the *mean* log density of the rows (not their sum).

        Parameters
        ----------
        X : array-like of shape (rows, features)
            Rows like those of `fit`.
        y : object, default=None
            Ignored; present because scikit-learn passes it.

        Returns
        -------
        float
            Mean of `score_samples`.
        """
        return float(self.score_samples(X).mean())

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Any:
        """Draw rows from the fitted density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState or None, default=None
            Seed or random generator; None gives different rows in each call.

        Returns
        -------
        numpy.ndarray or pandas.DataFrame
            `(n_samples, features)`; a DataFrame of the same library if fitted on one.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        X = self.scaling_.undo(self._sample(n_samples, random_stream(random_state)))
        if self.columns_ is None:
            return X
        return as_library(pd.DataFrame(X, columns=self.columns_), self.library_, None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "validation_log_likelihood_")

    def _checked_validation(self, validation_data: Any) -> np.ndarray:
        try:
            return checked_table(self, validation_data, reset=False)
        except ValueError as error:
            raise ValueError(f"validation_data: {error}") from error


def _split(X: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Divide rows into training and validation rows, at least one of each."""
    order = rng.permutation(len(X))
    held_out = min(max(1, round(VALIDATION_FRACTION * len(X))), len(X) - 1)
    return X[order[held_out:]], X[order[:held_out]]
