"""`RoundtripDetector`: outliers by their density, with p-values and explanations."""

import copy
import math
import os
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from roundtrip.data.checks import checked_table, has_only_numbers, unchanged_if_it_fails
from roundtrip.data.tags import TakesAnyCells
from roundtrip.estimator import Roundtrip
from roundtrip.io.model_file import check_finite
from roundtrip.io.saved import (
    FileParts,
    Restoring,
    SavedToFile,
    plain_estimator,
    plain_parameters,
)
from roundtrip.options import fit_options
from roundtrip.outliers.any_kind import fit_cells
from roundtrip.outliers.blurred import BlurredDensity
from roundtrip.outliers.columns import EDGE, GaussianColumns
from roundtrip.outliers.conformal import calling_score, fence
from roundtrip.outliers.default_density import (
    MOST_ROWS,
    check_scoring_sigma,
    default_density,
    density_of_any_kind,
    scoring_sigma,
)
from roundtrip.outliers.every_kind import EveryKind
from roundtrip.outliers.explanation import Explanation
from roundtrip.outliers.limits import Limits
from roundtrip.outliers.p_values import PValues
from roundtrip.outliers.scorer import Scorer
from roundtrip.outliers.trimming import FIRST_EDGE, TRIMMINGS, clear_outliers
from roundtrip.parameters import Seeds, check_choice, check_number

FEWEST_ROWS = 4

MOST_HELD_OUT = 10_000
"""Rows held out for p-values, at most, if rows are scored by every kind of oddity."""

SCORES = ("held_out_scores", "model_scores")


class RoundtripDetector(PValues, SavedToFile, TakesAnyCells, OutlierMixin, BaseEstimator):
    """Outliers by density: outside of the data, in its holes, or against its dependences.

    By default rows of numbers are scored by five oddities, each relative to the rows of `fit`: the
    log density under noise so wide that clusters of outliers disappear, the distance to the nearest
    rows, the log density of a linear Roundtrip model (a mixture of Gaussians), and the largest
    -log p(x_j | other features) under one Gaussian and under that mixture. Nothing in it is trained
    by gradient steps, so that a fit takes seconds. Clear outliers are first trimmed from the
    training rows. With `estimator` or `sigma`, that density alone scores rows, under wide noise.

    A share of the rows is held out; the p-value of a row is its rank among them. A saved detector
    contains up to 10,000 rows of the table, for the distances to neighbours.

    Tables with categories, dates or missing cells are scored by a density with its own noise: a row
    by its most surprising cell given the others (or by the whole row, if that is more unusual),
    relative to the tail of the surprises of that column among training rows.

    Parameters
    ----------
    contamination : float or "auto", default="auto"
        Share of outliers among the rows of `fit`, in (0, 0.5]. With "auto" about one usual row in a
        hundred, or fewer, is called an outlier, in tables of any number of columns: the threshold
        is an extrapolation of the tail of the scores of held-out rows. Where a single density
        scores rows it lies 2.5 interquartile ranges below the lower quartile of the scores of
        `fit`.
    estimator : Roundtrip, optional
        Density that alone scores rows, instead of every kind of oddity.
    sigma : float, "auto" or None, default="auto"
        Noise that a single density scores rows with, in its scaled units; None is its own noise,
        and a number needs isotropic noise. "auto" is every kind of oddity without `estimator`; with
        one it is 4, for columns of standard deviation 1, and None for columns in other units or
        other noise. A number or None without `estimator` fits a small network. Scoring with a
        number uses 4,096 codes, too few for noise much narrower than 1 in many columns; scoring
        with None computes densities to their tolerance, which takes much longer.
    columns : mapping, optional
        Kinds of columns that are not to be inferred, as for `Roundtrip`: ``{"zip": "category"}``.
    gaussian_columns : bool, default=True
        Whether columns are made Gaussian; otherwise a single density scores standardised ones.
    trim : bool, default=True
        Whether clear outliers are trimmed from the training rows.
    clean : bool, default=False
        Whether the rows of `fit` contain no outliers (novelty detection): nothing is trimmed, so
        that clusters of rows at the rim of the data count as usual.
    calibration_fraction : float, default=0.2
        Share of the rows held out for p-values.
    device : str or torch.device, default="auto"
        Device of the default density; "auto" is a CUDA GPU if there is one.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed, also of the density if that has none of its own.
    verbose : int, default=0
        1 shows progress on stderr.

    Attributes
    ----------
    estimator_ : Roundtrip or None
        Fitted density, in units of the mapped columns; None for every kind of oddity.
    scorer_ : Scorer or EveryKind
        What scores rows.
    blurred_ : BlurredDensity or None
        Density with wide noise; None if `estimator_` scores rows with its own.
    gaussian_columns_ : GaussianColumns or None
        Map of the columns.
    offset_ : float
        Score below which `predict` calls a row an outlier.
    held_out_scores_, model_scores_ : numpy.ndarray
        Sorted scores of held-out rows (None without such rows) and of draws from the density (None
        for every kind of oddity).
    n_trimmed_ : int
        Number of training rows that the last fit left out.
    n_features_in_, feature_names_in_ : int, numpy.ndarray
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = RoundtripDetector(random_state=0).fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]]).tolist()
    [1, -1]
    >>> bool(detector.p_value([[9.0, 9.0]])[0] < 0.02)
    True
    >>> detector.discoveries([[0.0, 0.0], [9.0, 9.0]]).tolist()
    [False, True]
    >>> detector.explain([[0.0, 9.0]]).named(1)
    [['x1']]
    """

    scorer_: Scorer | EveryKind

    def __init__(
        self,
        contamination: float | Literal["auto"] = "auto",
        *,
        estimator: Roundtrip | None = None,
        sigma: float | Literal["auto"] | None = "auto",
        columns: Any = None,
        gaussian_columns: bool = True,
        trim: bool = True,
        clean: bool = False,
        calibration_fraction: float = 0.2,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.contamination = contamination
        self.estimator = estimator
        self.sigma = sigma
        self.columns = columns
        self.gaussian_columns, self.trim, self.clean = gaussian_columns, trim, clean
        self.calibration_fraction = calibration_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        max_time: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit to rows that may contain outliers. If this fails, the detector does not change.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`. Rows with categories, dates or missing cells are scored by their
            most surprising cell given the others, under a density with its own noise.
        y : None
            Ignored.
        max_time : float, optional
            Seconds that the training of networks may take. The default score of complete numbers
            has none, and takes seconds.
        checkpoint : str or os.PathLike, optional
            File that keeps the state of that training, from which the same call resumes. Each fit
            after a trimming has a file of its own, with a number at the end of its name.
        """
        with unchanged_if_it_fails(self):
            return self._fit(X, Limits(max_time, checkpoint))

    def _fit(self, X: Any, limits: Limits) -> Self:
        self._check_parameters()
        if self._kinds or not has_only_numbers(X):
            return self._fit_any_kind(X, limits)
        X = checked_table(self, X, ensure_min_samples=FEWEST_ROWS)
        seeds = Seeds.from_random_state(self.random_state)
        order = seeds.rng("split").permutation(len(X))
        held_out = min(max(1, round(self.calibration_fraction * len(X))), len(X) - 2)
        training, calibration = X[order[held_out:]], X[order[:held_out]]
        if self.estimator is None and self.sigma == "auto" and self.gaussian_columns:
            fit = self._fit_every_kind
        else:
            fit = self._fit_density
        fit(training, calibration, seeds, limits)
        self._set_offset(X)
        return self

    def _fit_every_kind(
        self, training: np.ndarray, calibration: np.ndarray, seeds: Seeds, limits: Limits
    ) -> None:
        """Fit the score by every kind of oddity; nothing in it takes long."""
        training, calibration = training[:MOST_ROWS], calibration[:MOST_HELD_OUT]
        outlier = np.zeros(len(training), dtype=bool)
        if self.trim and not self.clean:
            outlier = clear_outliers(training)
        self.n_trimmed_ = int(outlier.sum())
        self.scorer_ = EveryKind.fit(training[~outlier], seed=seeds["density"] % 2**31)
        self.model_scores_: np.ndarray | None = None
        self.held_out_scores_ = np.sort(self.scorer_.scores(calibration))

    def _fit_density(
        self, training: np.ndarray, calibration: np.ndarray, seeds: Seeds, limits: Limits
    ) -> None:
        """Fit a density of the user's, or one with noise of the user's, to complete numbers."""
        density = self._new_density(training.shape[1], seed=seeds["density"] % 2**31)
        trim = self.trim and not self.clean
        outlier = np.zeros(len(training), dtype=bool)
        rounds = TRIMMINGS + 1 if trim else 1
        for trimmings in range(rounds):
            edge = FIRST_EDGE if trim and trimmings == 0 else EDGE
            limit = limits.of_fit(trimmings, rounds)
            scorer = self._fit_scorer(training[~outlier], density, edge, limit)
            self.n_trimmed_ = int(outlier.sum())
            if density.stopped_by_ == "interrupt":
                if edge != EDGE:  # the wide edge is for the first trimming, which does not come
                    scorer.columns = self._columns(training, EDGE)
                break
            before, scores = outlier, scorer.scores(training)
            outlier = scores < fence(scores)
            if trimmings and (outlier == before).all():
                break
        density.warm_start = False
        self.scorer_, self.model_scores_ = scorer, scorer.draw_scores()
        self.held_out_scores_ = np.sort(self.scorer_.scores(calibration))

    def _fit_any_kind(self, X: Any, limits: Limits) -> Self:
        """Fit to rows with categories, dates or missing cells."""
        if self.sigma not in ("auto", None):
            raise ValueError(
                f"sigma={self.sigma!r} is for tables of complete numbers; leave it out for rows "
                "with categories, dates or missing cells"
            )
        if self.estimator is not None:
            objective = fit_options(self.estimator.get_params(deep=False)).objective
            if not objective.has_posterior:
                raise ValueError(
                    f"objective={objective!r} has no posterior, which rows with categories, dates "
                    "or missing cells are scored by; use objective='likelihood'"
                )
        seeds = Seeds.from_random_state(self.random_state)
        density: Roundtrip = clone(self.estimator or density_of_any_kind(self.device))
        density.columns = self._kinds
        self._seed(density, seeds["density"] % 2**31)
        fitted = fit_cells(
            X,
            density,
            share=self.calibration_fraction,
            rng=seeds.rng("split"),
            least=FEWEST_ROWS,
            limit=limits.of_fit(0, 1),
        )
        density.schema_.name_features(self)
        self.scorer_, self.n_trimmed_ = fitted.scorer, 0
        self.held_out_scores_ = np.sort(fitted.held_out_scores)
        self.model_scores_ = fitted.scorer.draw_scores()
        self._set_offset(density.schema_.checked_values(density, X))
        return self

    @classmethod
    def from_density(cls, estimator: Roundtrip) -> Self:
        """Make a detector from a fitted density; p-values compare rows with draws from it.

        Parameters
        ----------
        estimator : Roundtrip
            Density of a table, fitted without a context.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> density = Roundtrip(max_epochs=2, random_state=0).fit(X)
        >>> RoundtripDetector.from_density(density).predict(X[:3]).shape
        (3,)
        """
        check_is_fitted(estimator)
        estimator = copy.copy(estimator)  # the user may fit the original again
        schema = estimator.schema_
        if schema.context is not None or schema.images is not None:
            raise ValueError("outliers are found by densities of tables without a context")
        detector = cls(estimator=estimator, sigma=None, gaussian_columns=False, trim=False)
        schema.name_features(detector)
        by_cells = schema.is_mixed and estimator.model_.has_posterior
        scorer = Scorer.of_cells(estimator) if by_cells else Scorer(estimator, None, None)
        detector.scorer_ = scorer
        detector.held_out_scores_ = None
        detector.n_trimmed_ = 0
        detector.model_scores_ = scorer.draw_scores()
        detector.offset_ = fence(detector.model_scores_)
        return detector

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of each row, `(rows,)`; low for outliers.

        By default, minus the weighted sum of the lengths of the tails of five oddities
        (docs/outliers.md). For a single density, the log density under its wide noise.

        In tables with categories, dates or missing cells: minus the largest surprise of a cell
        given the others, or of the whole row, relative to the tail of the surprises of that column,
        or of rows, among training rows.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, scored in scaled units; in units of `estimator_` if `sigma` is None.
        """
        check_is_fitted(self)
        return self.scorer_.scores(self._values(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """`score_samples` minus `offset_`, `(rows,)`; negative for outliers.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """-1 for outliers and 1 for all other rows, `(rows,)`.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def explain(self, X: Any) -> Explanation:
        """Explain why rows are odd: which kind of oddity, which features, and what would be usual.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`.
        """
        check_is_fitted(self)
        index = X.index if isinstance(X, pd.DataFrame) else None
        return self.scorer_.explain(self._values(X), self._feature_names(), index)

    def _file_parts(self) -> FileParts:
        names = getattr(self, "feature_names_in_", None)
        content = {
            "parameters": plain_parameters(self.get_params(deep=False) | {"estimator": None}),
            "estimator": plain_estimator(self.estimator),
            "offset": self.offset_,
            "n_trimmed": self.n_trimmed_,
            "feature_names": None if names is None else list(names),
        }
        scores = {name: getattr(self, f"{name}_") for name in SCORES}
        tensors = {k: torch.from_numpy(each) for k, each in scores.items() if each is not None}
        parts = FileParts(content, tensors)
        parts.add("scorer", self.scorer_.file_parts())
        return parts

    @classmethod
    def _from_file_parts(cls, parts: FileParts, how: Restoring) -> Self:
        content, tensors = parts.content, parts.tensors
        detector = cls(**how.parameters(content["parameters"]))
        detector.estimator = how.estimator(Roundtrip, content["estimator"])
        scorer = parts.within("scorer")
        if scorer.content.get("of") == "every kind":
            detector.scorer_ = EveryKind.from_file_parts(scorer)
            detector.n_features_in_ = len(detector.scorer_.columns.centre)
        else:
            detector.scorer_ = density_scorer = Scorer.from_file_parts(scorer, how)
            detector.n_features_in_ = density_scorer.density.n_features_in_
        if content["feature_names"] is not None:
            detector.feature_names_in_ = np.array(content["feature_names"], dtype=object)
        check_finite("detector", {name: tensors[name] for name in SCORES if name in tensors})
        check_number("offset", content["offset"], above=-math.inf)
        detector.offset_, detector.n_trimmed_ = content["offset"], content["n_trimmed"]
        for name in SCORES:
            setattr(detector, f"{name}_", tensors[name].numpy() if name in tensors else None)
        return detector

    @property
    def estimator_(self) -> Roundtrip | None:
        """The fitted density, in units of the mapped columns; None for every kind of oddity."""
        return self.scorer_.density if isinstance(self.scorer_, Scorer) else None

    @property
    def gaussian_columns_(self) -> GaussianColumns | None:
        """The map of the columns."""
        scorer = self.scorer_
        return scorer.columns if isinstance(scorer, Scorer) else scorer.wide.columns

    @property
    def blurred_(self) -> BlurredDensity | None:
        """The density under wide noise."""
        scorer = self.scorer_
        return scorer.blurred if isinstance(scorer, Scorer) else scorer.wide.blurred

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "offset_")

    def _values(self, X: Any) -> np.ndarray:
        """Check rows and return them as `(rows, columns)` float64."""
        if self.scorer_.takes_any_kind:
            assert isinstance(self.scorer_, Scorer)
            values = self.scorer_.density.schema_.checked_values(self, X)
            if self.scorer_.tails is None and np.isnan(values).any():
                raise ValueError(
                    "rows have missing cells, but the density was fitted to complete rows, so that "
                    "scores would not be comparable; fill the cells, or drop the rows"
                )
            return values
        return checked_table(self, X, reset=False)

    def _check_parameters(self) -> None:
        share = self.contamination
        if share != "auto" and not (isinstance(share, Real) and 0 < share <= 0.5):
            raise ValueError(
                f'contamination must be "auto" or a number above 0, at most 0.5, got {share!r}'
            )
        if self.estimator is not None and not isinstance(self.estimator, Roundtrip):
            raise ValueError(f"estimator must be a Roundtrip, got {type(self.estimator).__name__}")
        check_choice("gaussian_columns", self.gaussian_columns, (True, False))
        check_choice("trim", self.trim, (True, False))
        check_choice("clean", self.clean, (True, False))
        check_scoring_sigma(self.sigma, self.estimator)
        check_number("calibration_fraction", self.calibration_fraction, above=0, below=1)

    def _new_density(self, features: int, seed: int) -> Roundtrip:
        given = self.estimator
        if given is None:
            scale = None if self.gaussian_columns else "standard"
            given = default_density(features).set_params(scale=scale, device=self.device)
        density: Roundtrip = clone(given)
        self._seed(density, seed)
        return density

    @property
    def _kinds(self) -> Any:
        """Kinds of columns that the user gives, also by the density."""
        return self.columns or getattr(self.estimator, "columns", None)

    def _seed(self, density: Roundtrip, seed: int) -> None:
        """Give a density the seed and the verbosity that it has not of its own."""
        if density.random_state is None:
            density.random_state = seed
        if self.verbose:
            density.verbose = self.verbose

    def _fit_scorer(
        self, rows: np.ndarray, density: Roundtrip, edge: float, limit: dict[str, Any]
    ) -> Scorer:
        """Fit columns and density to training rows."""
        columns = self._columns(rows, edge)
        if self.estimator is None:
            rows = rows[:MOST_ROWS]  # `_fit` shuffled them
        density.fit(rows if columns is None else columns.apply(rows), **limit)
        density.warm_start = density.scale is None  # after trimming, training starts from here
        sigma = scoring_sigma(self.sigma, self.estimator, self.gaussian_columns)
        blurred = None if sigma is None else BlurredDensity.of(density.fitted_, sigma)
        return Scorer(density, columns, blurred)

    def _columns(self, rows: np.ndarray, edge: float) -> GaussianColumns | None:
        return GaussianColumns.fit(rows, edge) if self.gaussian_columns else None

    def _set_offset(self, values: np.ndarray) -> None:
        """Set the score below which rows are called outliers; `values` are the rows of `fit`."""
        if self.contamination == "auto" and isinstance(self.scorer_, EveryKind):
            assert self.held_out_scores_ is not None
            self.offset_ = calling_score(self.held_out_scores_)
            return
        scores = self.scorer_.scores(values)
        if self.contamination == "auto":
            self.offset_ = fence(scores)
        else:
            self.offset_ = float(np.quantile(scores, float(self.contamination)))

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names)
        density = self.estimator_
        indicated = density.schema_.indicated if density and self.scorer_.takes_any_kind else ()
        return [*names, *(f"{names[place]} (missing)" for place in indicated)]
