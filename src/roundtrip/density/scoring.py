"""`Scoring`: density, score, sample and transform of fitted estimators."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_array, check_is_fitted

from roundtrip.data.kinds import Column
from roundtrip.data.parts import part_of_rows
from roundtrip.data.rounding import Rounding
from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.density.fitted import FittedDensity
from roundtrip.density.mean import MeanDensity
from roundtrip.density.method import LARGEST_TOL, Method
from roundtrip.density.proposals import Proposal
from roundtrip.density.questions import Questions
from roundtrip.density.result import DensityEstimate
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import (
    as_component,
    check_choice,
    check_integer,
    check_number,
    random_stream,
)

MEAN_TOL = 0.01
"""Standard error of a mean log density, in nats, unless told otherwise."""


class Scoring(Questions):
    """Mixin of estimators with a `fitted_` density: densities, samples and codes in user units."""

    fitted_: FittedDensity
    noise: Any
    proposal: Proposal | Literal["auto"]
    tol: float
    verbose: int

    def density(
        self,
        X: Any,
        *,
        context: Any = None,
        method: str = "adaptive",
        tol: float | None = None,
        max_evaluations: int | None = None,
        n_samples: int | None = None,
        sigma: float | None = None,
        given: Sequence[Any] | None = None,
    ) -> DensityEstimate:
        """Estimate log densities with standard errors, in the units of `X`.

        The density of a row is that of its observed cells. Columns that a DataFrame leaves out are
        integrated out like missing cells.

        Parameters
        ----------
        X : array-like or DataFrame
            Rows, `(rows, features)`, or images. A DataFrame may have some of the columns only.
        context : array-like, default=None
            Context of each row, or one for all rows, if `fit` was given one. The densities are
            then conditional on it.
        method : {"adaptive", "importance", "laplace"}, default="adaptive"
            "adaptive" samples until the standard error is within `tol`, "importance" is eq. (5)
            with the paper's proposal, "laplace" is the closed form of eq. (12) with unknown error.
        tol : float, default=None
            Standard error in nats at which sampling of a row stops (adaptive). None is the `tol`
            of the estimator. If rows do not reach it, a `DensityWarning` is issued, and `converged`
            of the result is False for them.
        max_evaluations : int, default=None
            Largest number of evaluations of G per row (adaptive). None is 20,000.
        n_samples : int, default=None
            Draws per row (importance). None is the number of `proposal`.
        sigma : float, default=None
            Width of isotropic noise, in scaled units, to use instead of `sigma_`.
        given : sequence, default=None
            Labels of columns, or their numbers in an array, that the densities of the other columns
            are conditional on: log p(other columns | given columns).

        Returns
        -------
        DensityEstimate
            Log densities, standard errors and diagnostics, one entry per row. If rows have levels
            of categories that `fit` has not seen, `unseen_level` marks them.
        """
        check_is_fitted(self)
        for name, value, only in (
            ("tol", tol, "adaptive"),
            ("max_evaluations", max_evaluations, "adaptive"),
            ("n_samples", n_samples, "importance"),
        ):
            if value is not None and method != only:
                raise ValueError(f"{name} is for method={only!r}, not for method={method!r}")
        proposal = as_component("proposal", self.proposal, Proposal, {"auto": Proposal()})
        proposal.check()
        how = Method(
            method,
            self.tol if tol is None else tol,
            DEFAULT_EVALUATIONS if max_evaluations is None else max_evaluations,
            proposal.draws if n_samples is None else n_samples,
            proposal.scale,
            proposal.df,
        )
        rows = part_of_rows(self.schema_, self, X, context)
        result = self.fitted_.density(rows, how, sigma=sigma, verbose=bool(self.verbose))
        if given is not None:
            result = result.given(self._density_of_given(rows, given, how, sigma))
        unseen = np.any(self.schema_.unseen(rows.x), axis=1)
        index = X.index if isinstance(X, pd.DataFrame) else None
        return replace(result.marked(unseen), index=index)

    def score_samples(self, X: Any, *, context: Any = None) -> np.ndarray:
        """Estimate the log density of each row, in the units of `X`.

        Parameters
        ----------
        X : array-like or DataFrame
            Rows, `(rows, features)`, or images.
        context : array-like, default=None
            Context of each row, or one for all rows, if `fit` was given one.

        Returns
        -------
        numpy.ndarray
            Log densities, `(rows,)` float64.
        """
        check_is_fitted(self)
        rows = self.schema_.rows(self, X, context)
        how = Method(tol=self.tol)
        return self.fitted_.density(rows, how, verbose=bool(self.verbose)).log_density

    def score(self, X: Any, y: Any = None, *, context: Any = None) -> float:
        """Estimate the *mean* log density of the rows, not the sum, in the units of `X`.

        Its standard error is at most 0.01 nats, or `tol` divided by the root of the number of rows
        if that is more. `density_mean` chooses another and shows it.

        Parameters
        ----------
        X : array-like or DataFrame
            Rows, `(rows, features)`, or images.
        y : object, default=None
            Ignored; present for scikit-learn.
        context : array-like, default=None
            Context of each row, or one for all rows, if `fit` was given one.

        Returns
        -------
        float
            Mean log density in nats.
        """
        check_is_fitted(self)
        rows = self.schema_.rows(self, X, context)
        tol = check_number("tol", self.tol, above=0, below=LARGEST_TOL)
        # A single row need not be more precise than `tol`.
        tol = max(MEAN_TOL, tol / math.sqrt(len(rows)))
        return self.fitted_.mean(rows, tol, verbose=bool(self.verbose)).mean

    def density_mean(self, X: Any, *, context: Any = None, tol: float = MEAN_TOL) -> MeanDensity:
        """Estimate the mean log density of the rows with its standard error, in the units of `X`.

        The errors of rows are independent, so that the mean of many rows needs few draws per row.

        Parameters
        ----------
        X : array-like or DataFrame
            Rows, `(rows, features)`, or images.
        context : array-like, default=None
            Context of each row, or one for all rows, if `fit` was given one.
        tol : float, default=0.01
            Standard error of the mean in nats. If it is not reached, or if single rows are
            unreliable, a `DensityWarning` is issued.

        Returns
        -------
        MeanDensity
            The mean, its standard error and its cost.
        """
        check_is_fitted(self)
        tol = check_number("tol", tol, above=0, below=LARGEST_TOL)
        rows = self.schema_.rows(self, X, context)
        return self.fitted_.mean(rows, tol, verbose=bool(self.verbose))

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        context: Any = None,
        given: Any = None,
        rounded: bool = True,
    ) -> Any:
        """Draw rows from the fitted density, like the `X` of `fit`.

        Values of rounded columns are rounded and stay in the range of `fit`: values outside are
        drawn again, given the same z. In partly rounded columns (`rounding_`), as many values are
        rounded as there were in `fit`. The table is of the library of `X`, and its columns have the
        same types and levels. Cells are missing only if `missing` is "model".

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, numpy.random.RandomState or None, default=None
            Seed. With None rows differ between calls.
        context : array-like, default=None
            Context of each row, or one for all rows, if `fit` was given one.
        given : mapping or DataFrame, default=None
            What is known of some columns; the others are drawn given it. A mapping from columns to
            conditions: a value; a range ``(low, high)`` of numbers, dates or ordered levels, both
            ends included, None for an open end; or a list of levels. Or a DataFrame of some of the
            columns, for each of whose rows `n_samples` rows are drawn; its missing cells are drawn,
            too, and its index is repeated.
        rounded : bool, default=True
            Whether to round. False gives numbers in float64, drawn from the density itself, in
            which rounded values are spread over their rounding steps. It does not apply to images.

        Returns
        -------
        numpy.ndarray or DataFrame
            Rows, `(n_samples, features)`, or images; a table of the library of fit's `X`. With a
            DataFrame as `given`, the rows drawn for each of its rows, one after the other.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        check_choice("rounded", rounded, (True, False))
        if given is not None:
            return self._sample_given(given, n_samples, random_stream(random_state), rounded)
        contexts = self.schema_.encoded_context(context, n_samples)
        rng = random_stream(random_state)
        if not rounded:
            return self.schema_.table(self.fitted_.sample(contexts, rng))
        # Cut off at the ends of the range, values outside would pile up there.
        x = self.fitted_.sample(contexts, rng, outside=self.schema_.outside)
        return self.schema_.table(x, rng)

    def transform(self, X: Any, *, context: Any = None) -> np.ndarray:
        """Encode rows by H.

        Where H gives a distribution of z, the code is its mean.

        Parameters
        ----------
        X : array-like or DataFrame
            Rows, `(rows, features)`, or images.
        context : array-like, default=None
            Context of each row, or one for all rows, if `fit` was given one.

        Returns
        -------
        numpy.ndarray
            Latent codes H(x), `(rows, latent_dim)` float64.
        """
        check_is_fitted(self)
        codes = self.fitted_.encode(self.schema_.rows(self, X, context))
        return codes.double().cpu().numpy()

    def inverse_transform(self, Z: Any, *, context: Any = None) -> Any:
        """Generate rows by G, in the units of the rows of `fit`.

        Parameters
        ----------
        Z : array-like
            Latent codes, `(rows, latent_dim)`.
        context : array-like, default=None
            Context of each row, or one for all rows, if `fit` was given one.

        Returns
        -------
        numpy.ndarray or DataFrame
            The mean of x given z, G(z) in the paper, `(rows, features)` or images. If columns are
            categories, dates or durations, or had missing cells in fit, a table like that of fit
            with the most probable levels.
        """
        check_is_fitted(self)
        Z = check_array(Z, dtype=np.float64, input_name="Z")
        if Z.shape[1] != self.latent_dim_:
            raise ValueError(f"Z has {Z.shape[1]} columns, but latent_dim is {self.latent_dim_}")
        contexts = self.schema_.encoded_context(context, len(Z))
        x = self.fitted_.generate(torch.from_numpy(Z), contexts)
        return self.schema_.array(x) if self.schema_.has_only_numbers else self.schema_.table(x)

    @property
    def model_(self) -> RoundtripModel:
        """The model: networks, noise and prior, in scaled units."""
        return self.fitted_.model

    @property
    def scoring_seed_(self) -> int:
        """Seed of all draws in scoring."""
        return self.fitted_.seed

    @property
    def latent_dim_(self) -> int:
        """Dimension of z."""
        return self.model_.latent_dim

    @property
    def resolution_(self) -> np.ndarray:
        """Rounding step of each column, `(features,)`; 0 for columns that are not rounded."""
        return self.schema_.resolution[: self.schema_.n_columns]

    @property
    def columns_(self) -> dict[Any, Column]:
        """Kind of each column by its label, or by its number in an array; empty for images."""
        return self.schema_.described()

    @property
    def rounding_(self) -> tuple[Rounding, ...]:
        """How each column is rounded, with the evidence; empty for images."""
        return self.schema_.rounding[: self.schema_.n_columns]

    @property
    def sigma_(self) -> float | np.ndarray:
        """Standard deviation of the noise in scaled units: one number, or one per feature."""
        if self.model_.noise.sigma is None:
            noise = type(self.model_.noise).__name__
            raise AttributeError(f"{noise} has no sigma_: its width depends on z")
        sigma = self.model_.sigma.cpu().numpy()
        return sigma if sigma.ndim else float(sigma)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    @property
    def _n_features_out(self) -> int:
        return self.latent_dim_
