"""`RoundtripDetector`: outliers by their density, with p-values and explanations."""

import copy
import math
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
from roundtrip.outliers.conformal import fence
from roundtrip.outliers.default_density import (
    MOST_ROWS,
    check_scoring_sigma,
    default_density,
    density_of_any_kind,
    scoring_sigma,
)
from roundtrip.outliers.explanation import Explanation
from roundtrip.outliers.p_values import PValues
from roundtrip.outliers.scorer import Scorer
from roundtrip.parameters import Seeds, check_choice, check_number

TRIMMINGS = 3
FIRST_EDGE = 0.15
"""Share of the rows at either end of a column whose ranks are not used before the first trimming,
when many outliers may be at one end."""

FEWEST_ROWS = 4

SCORES = ("held_out_scores", "model_scores")


class RoundtripDetector(PValues, SavedToFile, TakesAnyCells, OutlierMixin, BaseEstimator):
    """Outlier detection by density: outliers are rows of low density.

    `fit` makes columns Gaussian by their ranks, so that neither units nor skewness matter, and fits
    a `Roundtrip` density. Rows are scored under that density with wide noise, in which small
    clusters of outliers disappear. Clear outliers are trimmed from the training rows and the
    density is fitted again, so that training data may contain outliers. A share of the rows is
    held out; the p-value of a row is its rank among them. A saved detector contains up to 512
    sorted values of each column, which make columns Gaussian, but no rows.

    Tables with categories, dates or missing cells have no Gaussian columns, wide noise or trimming:
    a row is scored by its most surprising cell given the others (or by the whole row, if that is
    more unusual), relative to the tail of the surprises of that column among training rows.

    Parameters
    ----------
    contamination : float or "auto", default="auto"
        Share of outliers among the rows of `fit`, in (0, 0.5]. With "auto" a row is an outlier if
        its score is more than 2.5 interquartile ranges below the lower quartile of the scores of
        `fit`; in tables of one or two columns, where some usual rows are, prefer p-values.
    estimator : Roundtrip, optional
        Density to fit; by default a small one with isotropic noise.
    sigma : float, "auto" or None, default="auto"
        Noise that rows are scored with, in the density's scaled units; None is the density's own
        noise, and a number needs isotropic noise. "auto" is 4, for columns of standard deviation 1,
        and None if `estimator` has columns in other units or other noise. Scoring with a number
        uses 4,096 codes, too few for noise much narrower than 1 in many columns; scoring with None
        computes densities to their tolerance, which takes much longer.
    columns : mapping, optional
        Kinds of columns that are not to be inferred, as for `Roundtrip`: ``{"zip": "category"}``.
    gaussian_columns : bool, default=True
        Whether columns are made Gaussian; otherwise the default density standardises them.
    trim : bool, default=True
        Whether clear outliers are trimmed from the training rows.
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
    estimator_ : Roundtrip
        Fitted density, in units of the mapped columns.
    blurred_ : BlurredDensity or None
        Density with wide noise, which scores rows; None if `estimator_` scores them.
    gaussian_columns_ : GaussianColumns or None
        Map of the columns.
    offset_ : float
        Score below which `predict` calls a row an outlier.
    held_out_scores_, model_scores_ : numpy.ndarray
        Sorted scores of held-out rows (None without such rows) and of draws from the density.
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

    def __init__(
        self,
        contamination: float | Literal["auto"] = "auto",
        *,
        estimator: Roundtrip | None = None,
        sigma: float | Literal["auto"] | None = "auto",
        columns: Any = None,
        gaussian_columns: bool = True,
        trim: bool = True,
        calibration_fraction: float = 0.2,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.contamination = contamination
        self.estimator = estimator
        self.sigma = sigma
        self.columns = columns
        self.gaussian_columns, self.trim = gaussian_columns, trim
        self.calibration_fraction = calibration_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows that may contain outliers. If this fails, the detector does not change.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`. Rows with categories, dates or missing cells are scored by their
            most surprising cell given the others, under a density with its own noise.
        y : None
            Ignored.
        """
        with unchanged_if_it_fails(self):
            return self._fit(X)

    def _fit(self, X: Any) -> Self:
        self._check_parameters()
        if self._kinds or not has_only_numbers(X):
            return self._fit_any_kind(X)
        X = checked_table(self, X, ensure_min_samples=FEWEST_ROWS)
        seeds = Seeds.from_random_state(self.random_state)
        order = seeds.rng("split").permutation(len(X))
        held_out = min(max(1, round(self.calibration_fraction * len(X))), len(X) - 2)
        training, calibration = X[order[held_out:]], X[order[:held_out]]
        density = self._new_density(X.shape[1], seed=seeds["density"] % 2**31)
        outlier = np.zeros(len(training), dtype=bool)
        for trimmings in range(TRIMMINGS + 1 if self.trim else 1):
            edge = FIRST_EDGE if self.trim and trimmings == 0 else EDGE
            self.scorer_ = self._fit_scorer(training[~outlier], density, edge)
            self.n_trimmed_ = int(outlier.sum())
            if density.stopped_by_ == "interrupt":
                if edge != EDGE:  # the wide edge is for the first trimming, which does not come
                    self.scorer_.columns = self._columns(training, EDGE)
                break
            before, scores = outlier, self.scorer_.scores(training)
            outlier = scores < fence(scores)
            if trimmings and (outlier == before).all():
                break
        density.warm_start = False
        self.model_scores_ = self.scorer_.draw_scores()
        self.held_out_scores_ = np.sort(self.scorer_.scores(calibration))
        self._set_offset(self.scorer_.scores(X))
        return self

    def _fit_any_kind(self, X: Any) -> Self:
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
            X, density, share=self.calibration_fraction, rng=seeds.rng("split"), least=FEWEST_ROWS
        )
        density.schema_.name_features(self)
        self.scorer_, self.n_trimmed_ = fitted.scorer, 0
        self.held_out_scores_ = np.sort(fitted.held_out_scores)
        self.model_scores_ = self.scorer_.draw_scores()
        self._set_offset(fitted.scores)
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
        detector.scorer_ = Scorer.of_cells(estimator) if by_cells else Scorer(estimator, None, None)
        detector.held_out_scores_ = None
        detector.n_trimmed_ = 0
        detector.model_scores_ = detector.scorer_.draw_scores()
        detector._set_offset(detector.model_scores_)
        return detector

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row under the wide noise, `(rows,)`; low for outliers.

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
        """Explain the low density of rows: off the manifold or far out on it, and which features.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`.
        """
        check_is_fitted(self)
        index = X.index if isinstance(X, pd.DataFrame) else None
        surprises = self.scorer_.surprises(self._values(X))
        return surprises.above(self.scorer_.usual_surprises, self._feature_names(), index)

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
        detector.scorer_ = Scorer.from_file_parts(parts.within("scorer"), how)
        detector.n_features_in_ = detector.estimator_.n_features_in_
        if content["feature_names"] is not None:
            detector.feature_names_in_ = np.array(content["feature_names"], dtype=object)
        check_finite("detector", {name: tensors[name] for name in SCORES if name in tensors})
        check_number("offset", content["offset"], above=-math.inf)
        detector.offset_, detector.n_trimmed_ = content["offset"], content["n_trimmed"]
        for name in SCORES:
            setattr(detector, f"{name}_", tensors[name].numpy() if name in tensors else None)
        return detector

    @property
    def estimator_(self) -> Roundtrip:
        """The fitted density, in units of the mapped columns."""
        return self.scorer_.density

    @property
    def gaussian_columns_(self) -> GaussianColumns | None:
        """The map of the columns."""
        return self.scorer_.columns

    @property
    def blurred_(self) -> BlurredDensity | None:
        """The density under wide noise."""
        return self.scorer_.blurred

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "offset_")

    def _values(self, X: Any) -> np.ndarray:
        """Check rows and return them as `(rows, columns)` float64."""
        if self.scorer_.takes_any_kind:
            values = self.estimator_.schema_.checked_values(self, X)
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

    def _fit_scorer(self, rows: np.ndarray, density: Roundtrip, edge: float) -> Scorer:
        """Fit columns and density to training rows."""
        columns = self._columns(rows, edge)
        if self.estimator is None:
            rows = rows[:MOST_ROWS]  # `_fit` shuffled them
        density.fit(rows if columns is None else columns.apply(rows))
        density.warm_start = density.scale is None  # after trimming, training starts from here
        sigma = scoring_sigma(self.sigma, self.estimator, self.gaussian_columns)
        blurred = None if sigma is None else BlurredDensity.of(density.fitted_, sigma)
        return Scorer(density, columns, blurred)

    def _columns(self, rows: np.ndarray, edge: float) -> GaussianColumns | None:
        return GaussianColumns.fit(rows, edge) if self.gaussian_columns else None

    def _set_offset(self, scores: np.ndarray) -> None:
        if self.contamination == "auto":
            self.offset_ = fence(scores)
        else:
            self.offset_ = float(np.quantile(scores, self.contamination))

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names)
        indicated = self.estimator_.schema_.indicated if self.scorer_.takes_any_kind else ()
        return [*names, *(f"{names[place]} (missing)" for place in indicated)]
