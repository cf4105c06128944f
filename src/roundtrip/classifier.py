"""`RoundtripClassifier`: Bayes' rule with class-conditional densities."""

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.data.context import check_label
from roundtrip.data.images import are_images
from roundtrip.density import DensityWarning, Method
from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.density.rough import rough_log_density
from roundtrip.estimator import Roundtrip
from roundtrip.io.model_file import plain
from roundtrip.io.progress import tracked
from roundtrip.io.saved import FileParts, Restoring, SavedToFile, plain_estimator
from roundtrip.parameters import check_choice

ROUGH_DRAWS = 64
NEGLIGIBLE = 12.0
"""Nats below the best class from which on a first look at a class is enough."""

NO_DOUBT = 1e-3
"""Probability below which a class whose density has not converged is no reason for doubt."""

DOUBT_ERRORS = 3.0


@dataclass(frozen=True)
class ClassPosterior:
    """p(y | x) of rows and how sure it is.

    Attributes
    ----------
    probability : `(rows, classes)`.
    std_error : `(rows, classes)`, of the probabilities, from the errors of the densities.
    log_density : `(rows, classes)`, log p(x | y) in the units of X. A first look, from a few draws,
        where it decides: of classes that are far behind, and of one that is far ahead of all. NaN
        where nothing was computed: of classes with a prior of 0, if the density has no posterior.
    log_density_error : `(rows, classes)`, its standard errors; NaN after a first look only.
    converged : `(rows,)` whether the probabilities are certain: no class is in doubt after a first
        look (one is 12 nats ahead of all), or the densities of those that are have converged, but
        for classes that would have less than a thousandth even three standard errors higher, or
        at their first look. That a class far behind at a first look does not matter is assumed: a
        first look may be too low.
    """

    probability: np.ndarray
    std_error: np.ndarray
    log_density: np.ndarray
    log_density_error: np.ndarray
    converged: np.ndarray


class RoundtripClassifier(SavedToFile, ClassifierMixin, BaseEstimator):
    """Bayes classification: p(y | x) ∝ p(y) p(x | y), with p(x | y) a conditional `Roundtrip`.

    Parameters
    ----------
    estimator : the density estimator to fit, a `Roundtrip`; None: one with default settings.
    priors : p(y): None for the frequencies in `fit`, "uniform", or a probability for each class in
        the order of `classes_`. It can be changed after fitting: ``set_params(priors=...)``.
    random_state : seed of the density estimator, if it has none of its own.

    Attributes
    ----------
    classes_ : the labels.
    class_count_ : rows of each class in `fit`.
    estimator_ : the fitted conditional density estimator.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=300)
    >>> X = rng.normal(size=(300, 2)) + 4 * y[:, None]
    >>> clf = RoundtripClassifier(Roundtrip(max_epochs=2), random_state=0).fit(X, y)
    >>> clf.score(X[:50], y[:50]) > 0.9
    True
    """

    class_count_: np.ndarray

    def __init__(
        self,
        estimator: Roundtrip | None = None,
        *,
        priors: Any = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.priors = priors
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, max_time: float | None = None) -> Self:
        """Fit p(x | y) to the rows of `X`, `(rows, features)` or images, with classes `y`."""
        if are_images(X):
            X, y = np.asarray(X), column_or_1d(y)
            check_consistent_length(X, y)
            self.__dict__.pop("feature_names_in_", None)  # of an earlier table
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        _log_priors(self.priors, counts)  # a mistake in them is told now
        if not (self.estimator is None or isinstance(self.estimator, Roundtrip)):
            raise ValueError(f"estimator must be a Roundtrip, got {type(self.estimator).__name__}")
        estimator = Roundtrip() if self.estimator is None else clone(self.estimator)
        if estimator.random_state is None:
            estimator.random_state = self.random_state
        estimator.fit(X, context=codes, max_time=max_time)
        self.n_features_in_ = estimator.n_features_in_
        self.classes_, self.class_count_, self.estimator_ = classes, counts, estimator
        return self

    @classmethod
    def from_density(
        cls, estimator: Roundtrip, *, class_count: Any = None, priors: Any = None
    ) -> Self:
        """A classifier from a density p(x | y) that is already fitted, with ``context=labels``.

        `class_count`, the rows of each class, gives p(y) where `priors` doesn't; None: all alike.

        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> labels = np.where(X[:, 0] > 0, "right", "left")
        >>> density = Roundtrip(max_epochs=2, random_state=0).fit(X, context=labels)
        >>> RoundtripClassifier.from_density(density).classes_.tolist()
        ['left', 'right']
        """
        check_is_fitted(estimator)
        context = estimator.schema_.context
        labels = None if context is None else context.labels
        if labels is None:
            raise ValueError("a classifier needs a density of classes: fit it with context=labels")
        classifier = cls(estimator, priors=priors)
        counts = np.ones(len(labels)) if class_count is None else np.asarray(class_count)
        if counts.shape != (len(labels),) or not ((counts >= 0).all() and counts.any()):
            raise ValueError(
                f"class_count must be {len(labels)} numbers of rows, one per class, got "
                f"{class_count!r}"
            )
        _log_priors(priors, counts)
        classifier._take_density(estimator, _array_of(labels), counts)
        return classifier

    def _take_density(self, estimator: Roundtrip, classes: np.ndarray, class_count: Any) -> None:
        """Become fitted by a density that is."""
        self.estimator_, self.classes_ = estimator, classes
        self.class_count_ = np.asarray(class_count)
        estimator.schema_.name_features(self)

    def posterior(
        self, X: Any, *, tol: float | None = None, max_evaluations: int | None = None
    ) -> ClassPosterior:
        """p(y | x) of the rows of `X`, `(rows, features)` or images, with error bars.

        `tol` and `max_evaluations` are those of `Roundtrip.density`.
        """
        check_is_fitted(self)
        fitted = self.estimator_.fitted_
        rows = fitted.schema.without_context(self, X).to(fitted.model.device)
        contexts = self._contexts()
        log_priors = _log_priors(self.priors, self.class_count_)
        log_density = self._rough(rows, contexts)
        has_rough = fitted.model.has_posterior
        rough = log_density.copy() if has_rough else np.full_like(log_density, -np.inf)
        error = np.full_like(log_density, np.nan)
        certain = np.ones(log_density.shape, dtype=bool)
        estimated = np.zeros_like(certain)
        if has_rough:
            wanted = self._in_play(log_density + log_priors)
        else:  # nothing is known of any class yet
            wanted = np.broadcast_to(np.isfinite(log_priors), certain.shape)
        method = Method(
            tol=self.estimator_.tol if tol is None else tol,
            max_evaluations=DEFAULT_EVALUATIONS if max_evaluations is None else max_evaluations,
        )
        while wanted.any():
            for place, context in enumerate(contexts):
                among = wanted[:, place]
                if among.any():
                    with warnings.catch_warnings():
                        # Of a class that a row is not of, no density need be certain.
                        warnings.simplefilter("ignore", DensityWarning)
                        result = fitted.density(
                            rows[torch.from_numpy(among)].given(context),
                            method,
                            verbose=bool(self.estimator_.verbose),
                        )
                    log_density[among, place] = result.log_density
                    error[among, place] = result.std_error
                    certain[among, place] = result.converged
            estimated |= wanted
            wanted = self._in_play(log_density + log_priors) & ~estimated
        joint = log_density + log_priors
        log_total = logsumexp(joint, axis=1, keepdims=True)
        probability = np.exp(joint - log_total)
        if not has_rough:
            log_density[~estimated] = np.nan
        # Delta method: dp_k = p_k (dl_k - Σ_j p_j dl_j), errors of different classes independent.
        spread = np.nan_to_num(error)  # classes that do not matter add nothing
        others = (probability * spread) ** 2
        total = others.sum(axis=1, keepdims=True) - others
        variance = probability**2 * (((1 - probability) * spread) ** 2 + total)
        # An estimate that has not converged is rather too low than too high.
        highest = np.maximum(rough, np.nan_to_num(log_density) + DOUBT_ERRORS * spread)
        negligible = highest + log_priors < log_total + np.log(NO_DOUBT)
        converged = (certain | negligible).all(axis=1)
        return ClassPosterior(probability, np.sqrt(variance), log_density, error, converged)

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(y | x), `(rows, classes)` in the order of `classes_`."""
        return self.posterior(X).probability

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log p(y | x), `(rows, classes)`."""
        result = self.posterior(X)
        log_priors = _log_priors(self.priors, self.class_count_)
        joint = np.where(np.isneginf(log_priors), -np.inf, result.log_density + log_priors)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row, `(rows,)`."""
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(axis=1)]

    def _contexts(self) -> Tensor:
        """Each class as the density encodes it, `(classes, context_dim)`."""
        context = self.estimator_.schema_.context
        assert context is not None
        assert context.labels is not None
        labels = list(context.labels)
        return torch.from_numpy(context.encode(labels, len(labels)))

    def _in_play(self, joint: np.ndarray) -> np.ndarray:
        """Which classes need a close look, `(rows, classes)`: none if one is far ahead of all."""
        near = joint >= joint.max(axis=1, keepdims=True) - NEGLIGIBLE
        return near & (near.sum(axis=1, keepdims=True) > 1)

    def _rough(self, rows: Rows, contexts: Tensor) -> np.ndarray:
        """log p(x | y) of all classes from a few draws, `(rows, classes)`."""
        fitted = self.estimator_.fitted_
        if not fitted.model.has_posterior:  # rough values would say nothing
            return np.zeros((len(rows), len(contexts)))
        columns = [
            rough_log_density(
                fitted.prepared.given(context.to(rows.device)).model,
                rows.x,
                draws=ROUGH_DRAWS,
                seed=fitted.seed,
            )
            for context in tracked(
                contexts, "rough density of each class", enabled=bool(self.estimator_.verbose)
            )
        ]
        return np.stack(columns, axis=1) + fitted.schema.log_det

    def _file_parts(self) -> FileParts:
        for label in self.classes_.tolist():
            check_label(label)
        content = {
            "priors": plain(self.priors),
            "random_state": plain(self.random_state),
            "estimator": plain_estimator(self.estimator),
            "classes": self.classes_.tolist(),
            "class_count": plain(self.class_count_),
        }
        parts = FileParts(content, {})
        parts.add("density", self.estimator_._file_parts())
        return parts

    @classmethod
    def _from_file_parts(cls, parts: FileParts, how: Restoring) -> Self:
        content = parts.content
        density = Roundtrip._from_file_parts(parts.within("density"), how)
        classifier = cls(
            how.estimator(Roundtrip, content["estimator"]),
            priors=content["priors"],
            random_state=content["random_state"],
        )
        classifier._take_density(density, _array_of(content["classes"]), content["class_count"])
        return classifier


def _log_priors(priors: Any, class_count: np.ndarray) -> np.ndarray:
    """log p(y) of each class, from its frequency or as given."""
    count = len(class_count)
    if priors is None:
        probabilities = class_count / class_count.sum()
    elif isinstance(priors, str):
        check_choice("priors", priors, ["uniform"])
        probabilities = np.full(count, 1 / count)
    else:
        probabilities = np.asarray(priors, dtype=np.float64)
        if probabilities.shape != (count,) or not (probabilities >= 0).all():
            raise ValueError(f"priors must be {count} probabilities, one a class, got {priors!r}")
        if not np.isclose(probabilities.sum(), 1.0):
            raise ValueError(f"priors must sum to 1, but sum to {probabilities.sum():g}")
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _array_of(labels: Sequence[Hashable]) -> np.ndarray:
    """Labels as an array; of objects where NumPy would make something else of them."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
