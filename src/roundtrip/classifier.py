"""`RoundtripClassifier`: Bayes' rule with class-conditional densities."""

import copy
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np
import torch
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.data.checks import (
    has_only_numbers,
    naming_bad_cells,
    remember_labels,
    unchanged_if_it_fails,
)
from roundtrip.data.context import check_label
from roundtrip.data.images import are_images, check_channels
from roundtrip.data.libraries import as_frame
from roundtrip.data.masked import check_unmasked
from roundtrip.data.tags import TakesAnyCells
from roundtrip.density import Method
from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.density.class_posterior import ClassPosterior, log_joint
from roundtrip.density.randomness import seed_of
from roundtrip.density.rough import known_rows, rough_log_density
from roundtrip.estimator import Roundtrip
from roundtrip.io.model_file import plain
from roundtrip.io.progress import tracked
from roundtrip.io.saved import FileParts, Restoring, SavedToFile, plain_estimator
from roundtrip.parameters import check_choice

ROUGH_DRAWS = 64
NEGLIGIBLE = 12.0
"""A rough estimate is enough for a class that is this many nats below the best one."""


class RoundtripClassifier(SavedToFile, TakesAnyCells, ClassifierMixin, BaseEstimator):
    """Bayes classification: p(y | x) ∝ p(y) p(x | y), with p(x | y) a conditional `Roundtrip`.

    Parameters
    ----------
    estimator : Roundtrip, optional
        Density estimator to fit; by default one with default settings.
    priors : "uniform" or array-like, optional
        Probability p(y) of each class in the order of `classes_`; by default its frequency in
        `fit`. It can be changed after fitting: ``set_params(priors=...)``.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed of the density estimator, if that has none of its own.

    Attributes
    ----------
    classes_ : numpy.ndarray
        Class labels.
    class_count_ : numpy.ndarray
        Number of rows of each class in `fit`.
    estimator_ : Roundtrip
        Fitted conditional density p(x | y).
    n_features_in_, feature_names_in_ : int, numpy.ndarray
        As in scikit-learn.

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
        """Fit p(x | y) to rows and their classes.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, or images.
        y : array-like
            `(rows,)`, class of each row.
        max_time : float, optional
            Seconds after which training ends, as in `Roundtrip.fit`.

        Returns
        -------
        self
        """
        with unchanged_if_it_fails(self):
            return self._fit(X, y, max_time)

    def _fit(self, X: Any, y: Any, max_time: float | None) -> Self:
        check_unmasked("y", y)
        if are_images(X):
            X, y = np.asarray(X), column_or_1d(y)
            check_consistent_length(X, y)
            self.__dict__.pop("feature_names_in_", None)  # of an earlier table
        elif getattr(self.estimator, "columns", None) or not has_only_numbers(X):
            self.__dict__.pop("feature_names_in_", None)
            y = column_or_1d(check_array(y, ensure_2d=False, dtype=None))
            check_consistent_length(X, y)
        else:
            check_channels(X)
            _, frame = as_frame(X)
            remember_labels(self, None if frame is None else list(frame.columns))
            with naming_bad_cells(X):
                X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(classes) < 2:
            raise ValueError(
                f"a classifier needs rows of at least two classes, but all of y is {classes[0]}; "
                "for the density of one class use Roundtrip"
            )
        _log_priors(self.priors, counts)  # raises before a long fit
        if not (self.estimator is None or isinstance(self.estimator, Roundtrip)):
            raise ValueError(f"estimator must be a Roundtrip, got {type(self.estimator).__name__}")
        estimator = Roundtrip() if self.estimator is None else clone(self.estimator)
        if estimator.random_state is None:
            estimator.random_state = self.random_state
        estimator.fit(X, context=codes, max_time=max_time)
        self.n_features_in_ = estimator.n_features_in_
        if hasattr(estimator, "feature_names_in_"):
            self.feature_names_in_ = estimator.feature_names_in_
        self.classes_, self.class_count_, self.estimator_ = classes, counts, estimator
        return self

    @classmethod
    def from_density(
        cls, estimator: Roundtrip, *, class_count: Any = None, priors: Any = None
    ) -> Self:
        """Make a classifier from a fitted density p(x | y).

        Parameters
        ----------
        estimator : Roundtrip
            Density that was fitted with ``context=labels``.
        class_count : array-like, optional
            Number of rows of each class, from which p(y) follows if `priors` is None; by default
            all classes have the same probability.
        priors : "uniform" or array-like, optional
            Probability of each class.

        Examples
        --------
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
        estimator = copy.copy(estimator)  # a later fit of the caller's would be another density
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
        """Set the fitted attributes."""
        self.estimator_, self.classes_ = estimator, classes
        self.class_count_ = np.asarray(class_count)
        estimator.schema_.name_features(self)

    def posterior(
        self, X: Any, *, tol: float | None = None, max_evaluations: int | None = None
    ) -> ClassPosterior:
        """p(y | x) of each row with error bars.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, or images.
        tol, max_evaluations : float and int, optional
            As in `Roundtrip.density`.

        Returns
        -------
        ClassPosterior
            Probabilities, densities and their standard errors.
        """
        check_is_fitted(self)
        fitted = self.estimator_.fitted_
        rows = fitted.schema.without_context(self, X).to(fitted.model.device)
        contexts = self._contexts()
        log_priors = _log_priors(self.priors, self.class_count_)
        log_density = self._rough(rows, contexts)
        has_rough = fitted.model.has_posterior
        trusted = self._trusted(rows, contexts, log_density + log_priors)
        rough = log_density.copy() if has_rough else np.full_like(log_density, -np.inf)
        error = np.full_like(log_density, np.nan)
        converged = np.ones(log_density.shape, dtype=bool)
        estimated = np.zeros_like(converged)
        possible = np.isfinite(log_priors)
        wanted = np.where(trusted[:, None], self._in_play(log_density + log_priors), possible)
        method = Method(
            tol=self.estimator_.tol if tol is None else tol,
            max_evaluations=DEFAULT_EVALUATIONS if max_evaluations is None else max_evaluations,
        )
        while wanted.any():
            for place, context in enumerate(contexts):
                among = wanted[:, place]
                if among.any():
                    # The density of a class that the row does not belong to need not converge.
                    result = fitted.density(
                        rows[torch.from_numpy(among)].given(context),
                        method,
                        verbose=bool(self.estimator_.verbose),
                        warn=False,
                    )
                    log_density[among, place] = result.log_density
                    error[among, place] = result.std_error
                    converged[among, place] = result.converged
            estimated |= wanted
            wanted = self._in_play(log_density + log_priors) & ~estimated
        if not has_rough:
            log_density[~estimated] = np.nan
        return ClassPosterior.of(
            log_density, error, converged, rough=rough, log_priors=log_priors, trusted=trusted
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """p(y | x), `(rows, classes)` in the order of `classes_`.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, or images.
        """
        return self.posterior(X).probability

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log p(y | x), `(rows, classes)` in the order of `classes_`.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, or images.
        """
        result = self.posterior(X)
        log_priors = _log_priors(self.priors, self.class_count_)
        joint = log_joint(result.log_density, log_priors)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row, `(rows,)`.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, or images.
        """
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(axis=1)]

    def _contexts(self) -> Tensor:
        """Encoded context of each class, `(classes, context_dim)`."""
        context = self.estimator_.schema_.context
        assert context is not None
        assert context.labels is not None
        labels = list(context.labels)
        return torch.from_numpy(context.encode(labels, len(labels)))

    def _in_play(self, joint: np.ndarray) -> np.ndarray:
        """Which classes need a precise density, `(rows, classes)`: those near the best, if any."""
        near = joint >= joint.max(axis=1, keepdims=True) - NEGLIGIBLE
        return near & (near.sum(axis=1, keepdims=True) > 1)

    def _trusted(self, rows: Rows, contexts: Tensor, joint: np.ndarray) -> np.ndarray:
        """Which rows the encoder knows, given their likeliest class by a rough estimate, `(rows,)`.

        For the others a rough estimate says nothing, not even of the classes that are far behind.
        """
        fitted = self.estimator_.fitted_
        trusted = np.zeros(len(rows), dtype=bool)
        if fitted.model.has_posterior:
            best = joint.argmax(axis=1)
            for place, context in enumerate(contexts):
                among = best == place
                if among.any():
                    trusted[among] = known_rows(
                        fitted.prepared.given(context.to(rows.device)),
                        rows.x[torch.from_numpy(among)],
                        seed=seed_of(context.numpy(), fitted.seed),
                    )
        return trusted

    def _rough(self, rows: Rows, contexts: Tensor) -> np.ndarray:
        """Rough estimates of log p(x | y), `(rows, classes)`; zeros without q(z | x)."""
        fitted = self.estimator_.fitted_
        if not fitted.model.has_posterior:
            return np.zeros((len(rows), len(contexts)))
        given = (fitted.prepared.given(each.to(rows.device)) for each in contexts)
        models = [each.model_of(rows.x) for each in given]
        verbose = bool(self.estimator_.verbose)
        columns = [
            rough_log_density(model, rows.x, draws=ROUGH_DRAWS, seed=fitted.seed)
            for model in tracked(models, "rough density of each class", enabled=verbose)
        ]
        return np.stack(columns, axis=1) + fitted.schema.log_dets(rows.x)[:, None]

    def _file_parts(self) -> FileParts:
        for label in self.classes_.tolist():
            check_label(label)
        names = getattr(self, "feature_names_in_", None)
        content = {
            "priors": plain(self.priors),
            "random_state": plain(self.random_state),
            "estimator": plain_estimator(self.estimator),
            "classes": self.classes_.tolist(),
            "class_count": plain(self.class_count_),
            "feature_names": None if names is None else list(names),
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
        context, counts = density.schema_.context, np.asarray(content["class_count"])
        n_classes = 0 if context is None else len(context.labels or ())
        possible = counts.dtype.kind in "iuf" and bool((counts >= 0).all()) and counts.sum() > 0
        if not len(content["classes"]) == len(counts) == n_classes or not possible:
            raise ValueError(f"{n_classes} classes, with the numbers of rows {counts.tolist()}")
        _log_priors(classifier.priors, counts)
        classifier._take_density(density, _array_of(content["classes"]), counts)
        if content["feature_names"] is not None:  # `fit` gives the density rows without names
            classifier.feature_names_in_ = np.array(content["feature_names"], dtype=object)
        return classifier


def _log_priors(priors: Any, class_count: np.ndarray) -> np.ndarray:
    """log p(y) of each class."""
    count = len(class_count)
    if priors is None:
        probabilities = class_count / class_count.sum()
    elif isinstance(priors, str):
        check_choice("priors", priors, ["uniform"])
        probabilities = np.full(count, 1 / count)
    else:
        probabilities = np.asarray(priors, dtype=np.float64)
        if probabilities.shape != (count,) or not (probabilities >= 0).all():
            raise ValueError(f"priors must be {count} probabilities, one per class, got {priors!r}")
        if not np.isclose(probabilities.sum(), 1.0):
            raise ValueError(f"priors must sum to 1, but sum to {probabilities.sum():g}")
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _array_of(labels: Sequence[Hashable]) -> np.ndarray:
    """Labels as an array, of objects if NumPy would convert them."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
