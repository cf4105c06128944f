"""`Scoring`: the questions that a fitted density estimator answers."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_array, check_is_fitted

from roundtrip.data import Schema
from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.density.estimate import Method
from roundtrip.density.fitted import FittedDensity
from roundtrip.density.proposals import Proposal
from roundtrip.density.result import DensityEstimate
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import check_integer, random_stream


class Scoring:
    """Densities, samples and encodings in the user's units, from the attribute `fitted_`."""

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
    ) -> DensityEstimate:
        """Log densities of the rows of `X` in `X`'s own units, with error bars.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, or images.
        context : array-like, optional
            Of each row, or one for all, if there was one in `fit`; the density is then that of x
            given its context.
        method : {"adaptive", "importance", "laplace"}, default="adaptive"
            Importance sampling until the standard error per row is below `tol`; eq. (5) with the
            paper's proposal; the closed form of eq. (12), error unknown.
        tol : float, optional
            In nats; the estimator's `tol` when None. Rows that do not reach it raise one
            `DensityWarning` and are marked in the result's `converged`.
        max_evaluations : int, optional
            Evaluations of G per row at most (adaptive); 20,000 when None.
        n_samples : int, optional
            Draws per row (importance); those of `proposal` when None.
        sigma : float, optional
            Observation noise in scaled units other than the fitted `sigma_` (isotropic noise).

        Returns
        -------
        DensityEstimate
            Log densities, standard errors and diagnostics, one entry per row.
        """
        check_is_fitted(self)
        for name, value, only in (
            ("tol", tol, "adaptive"),
            ("max_evaluations", max_evaluations, "adaptive"),
            ("n_samples", n_samples, "importance"),
        ):
            if value is not None and method != only:
                raise ValueError(f"{name} is for method={only!r}, not for method={method!r}")
        proposal = self.proposal if isinstance(self.proposal, Proposal) else Proposal()
        how = Method(
            method,
            self.tol if tol is None else tol,
            DEFAULT_EVALUATIONS if max_evaluations is None else max_evaluations,
            proposal.draws if n_samples is None else n_samples,
            proposal.scale,
            proposal.df,
        )
        rows = self.schema_.rows(self, X, context)
        result = self.fitted_.density(rows, how, sigma=sigma, verbose=bool(self.verbose))
        return replace(result, index=X.index if isinstance(X, pd.DataFrame) else None)

    def score_samples(self, X: Any, *, context: Any = None) -> np.ndarray:
        """Log density of each row of `X` in `X`'s own units, `(rows,)` float64."""
        return self.density(X, context=context).log_density

    def score(self, X: Any, y: Any = None, *, context: Any = None) -> float:
        """The *mean* log-likelihood of the rows of `X` (not their sum); `y` is ignored."""
        return float(self.score_samples(X, context=context).mean())

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        context: Any = None,
    ) -> np.ndarray | pd.DataFrame:
        """Draw rows from the fitted density, like the `X` of `fit`.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, numpy.random.RandomState or None, default=None
            Seed; None: new rows every time.
        context : array-like, optional
            Of each row, or one for all, if there was one in `fit`.

        Returns
        -------
        numpy.ndarray or DataFrame
            `(n_samples, features)`; a DataFrame if the estimator was fitted on one, or images.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        contexts = self.schema_.encoded_context(context, n_samples)
        return self.schema_.table(self.fitted_.sample(contexts, random_stream(random_state)))

    def transform(self, X: Any, *, context: Any = None) -> np.ndarray:
        """The encoding H(x) of each row, `(rows, latent_dim)` float64."""
        check_is_fitted(self)
        codes = self.fitted_.encode(self.schema_.rows(self, X, context))
        return codes.double().cpu().numpy()

    def inverse_transform(self, Z: Any, *, context: Any = None) -> np.ndarray:
        """G(z) in `X`'s own units for each row of `Z`, `(rows, latent_dim)`."""
        check_is_fitted(self)
        Z = check_array(Z, dtype=np.float64, input_name="Z")
        if Z.shape[1] != self.latent_dim_:
            raise ValueError(f"Z has {Z.shape[1]} columns, but latent_dim is {self.latent_dim_}")
        contexts = self.schema_.encoded_context(context, len(Z))
        return self.schema_.array(self.fitted_.generate(torch.from_numpy(Z), contexts))

    @property
    def model_(self) -> RoundtripModel:
        """The networks, noise and prior, in scaled units."""
        return self.fitted_.model

    @property
    def schema_(self) -> Schema:
        """What rows look like: columns, scaling, context, images."""
        return self.fitted_.schema

    @property
    def scoring_seed_(self) -> int:
        """Seed of the draws that all scoring shares."""
        return self.fitted_.seed

    @property
    def latent_dim_(self) -> int:
        """Dimension of z."""
        return self.model_.latent_dim

    @property
    def resolution_(self) -> np.ndarray:
        """Rounding step of each column, `(features,)`."""
        return self.schema_.resolution

    @property
    def sigma_(self) -> float | np.ndarray:
        """Observation noise in scaled units: one number, or one per feature."""
        if self.model_.noise.sigma is None:
            raise AttributeError(f"noise={self.noise!r} has no sigma_: its width depends on z")
        sigma = self.model_.sigma.cpu().numpy()
        return sigma if sigma.ndim else float(sigma)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    @property
    def _n_features_out(self) -> int:
        return self.latent_dim_
