"""What all baselines share: checks, splitting, scaling, units."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from roundtrip.baselines.budget import Budget
from roundtrip.data.scaling import Scaling
from roundtrip.parameters import check_integer, check_number, random_stream

VALIDATION_FRACTION = 0.1


class DensityBaseline(DensityMixin, BaseEstimator, ABC):
    """A density estimator with scikit-learn's interface that works on standardised columns.

    Subclasses write the four methods below for standardised rows; here the user's units are kept:
    every log density that leaves has the scaling's log|det| in it.
    """

    random_state: int | np.random.RandomState | None
    validation_log_likelihood_: float
    history_: dict[str, list[float]]

    @abstractmethod
    def _check_settings(self) -> None:
        """Raise a `ValueError` that names the first parameter with a value that is not allowed."""

    @abstractmethod
    def _fit(
        self,
        training: np.ndarray,
        validation: np.ndarray,
        *,
        budget: Budget,
        random: np.random.RandomState,
    ) -> None:
        """Learn from standardised rows; store `validation_log_likelihood_` and `history_`."""

    @abstractmethod
    def _log_density(self, rows: np.ndarray) -> np.ndarray:
        """Log density of standardised rows in standardised units, `(rows,)` float64."""

    @abstractmethod
    def _sample(self, n_samples: int, random: np.random.RandomState) -> np.ndarray:
        """Standardised new rows, `(n_samples, features)` float64, in no particular order."""

    def fit(
        self, X: Any, y: Any = None, *, validation_data: Any = None, max_time: float | None = None
    ) -> Self:
        """Fit to the rows of `X`, `(rows, features)`; `y` is ignored.

        Parameters
        ----------
        validation_data : rows to choose settings and stop by, `(rows, features)`; None holds out
            a tenth of `X`, drawn with `random_state`.
        max_time : seconds for the whole fit, validation included; None is no limit. What is
            learned then depends on the speed of the machine, too.
        """
        if max_time is not None:
            max_time = check_number("max_time", max_time, above=0)
        budget = Budget(max_time)
        self._check_settings()
        random = random_stream(self.random_state)
        columns = list(X.columns) if isinstance(X, pd.DataFrame) else None
        X = validate_data(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        if validation_data is None:
            training, validation = _split(X, random)
        else:
            training, validation = X, self._checked_validation(validation_data)
        self.columns_ = columns
        self.scaling_ = Scaling.fit(training, "standard")
        self._fit(
            self.scaling_.apply(training),
            self.scaling_.apply(validation),
            budget=budget,
            random=random,
        )
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row of `X` in `X`'s own units, `(rows,)` float64."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return self._log_density(self.scaling_.apply(X)) + self.scaling_.log_det

    def score(self, X: Any, y: Any = None) -> float:
        """The *mean* log-likelihood of the rows of `X` (not their sum); `y` is ignored."""
        return float(self.score_samples(X).mean())

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> np.ndarray | pd.DataFrame:
        """Draw rows from the fitted density, like the `X` of `fit`: `(n_samples, features)`.

        A DataFrame if the estimator was fitted on one. `random_state` None: new rows every time.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        X = self.scaling_.undo(self._sample(n_samples, random_stream(random_state)))
        return X if self.columns_ is None else pd.DataFrame(X, columns=self.columns_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "validation_log_likelihood_")

    def _checked_validation(self, validation_data: Any) -> np.ndarray:
        try:
            return validate_data(self, validation_data, dtype=np.float64, order="C", reset=False)
        except ValueError as error:
            raise ValueError(f"validation_data: {error}") from error


def _split(X: np.ndarray, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to validate on, at least one of each."""
    order = random.permutation(len(X))
    held_out = min(max(1, round(VALIDATION_FRACTION * len(X))), len(X) - 1)
    return X[order[held_out:]], X[order[:held_out]]
