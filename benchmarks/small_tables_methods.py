"""The methods of small_tables.py, each an estimator with `fit(X, max_time=)` and log densities."""

import warnings

import numpy as np
import torch
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator
from sklearn.covariance import LedoitWolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from roundtrip import Roundtrip
from roundtrip.baselines import MAF, NSF
from roundtrip.baselines.budget import Budget
from roundtrip.baselines.kde import DEFAULT_FACTORS, log_kernel_density
from roundtrip.density.blocks import map_blocks

ROUNDTRIP, GAUSSIAN = "Roundtrip", "Gaussian"


class LedoitWolfGaussian(BaseEstimator):
    """One Gaussian; its covariance is shrunk as by Ledoit and Wolf."""

    def __init__(self, random_state=None):
        self.random_state = random_state  # unused: nothing is drawn

    def fit(self, X, max_time=None):
        fitted = LedoitWolf().fit(X)
        self.gaussian_ = multivariate_normal(fitted.location_, fitted.covariance_)
        self.details_ = {"shrinkage": float(fitted.shrinkage_)}
        return self

    def score_samples(self, X):
        return self.gaussian_.logpdf(X)


class MixtureByBIC(BaseEstimator):
    """Gaussian mixture; BIC chooses the number of components and the kind of covariance.

    Numbers are tried in order, of each kind until two in a row do not improve BIC. Each component
    must have `rows_per_component` rows, and with a full covariance more rows than features:
    otherwise it may collapse onto few rows, which BIC rewards.
    """

    def __init__(
        self,
        components=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
        kinds=("full", "tied", "diag"),
        rows_per_component=10,
        random_state=None,
    ):
        self.components = components
        self.kinds = kinds
        self.rows_per_component = rows_per_component
        self.random_state = random_state

    def fit(self, X, max_time=None):
        budget = Budget(max_time)
        best = np.inf
        self.stopped_by_ = None
        for kind in self.kinds:
            best_of_kind, worse = np.inf, 0
            for number in self.components:
                if budget.spent:
                    self.stopped_by_ = "max_time"
                if budget.spent or worse == 2 or 2 * number > len(X):
                    break
                mixture = GaussianMixture(
                    number, covariance_type=kind, random_state=self.random_state
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    mixture.fit(X)
                rows = len(X) * mixture.weights_.min()
                few = rows < self.rows_per_component or (kind == "full" and rows <= X.shape[1])
                bic = np.inf if few and number > 1 else mixture.bic(X)
                worse = 0 if bic < best_of_kind else worse + 1
                best_of_kind = min(bic, best_of_kind)
                if bic < best:
                    best, self.mixture_ = bic, mixture
        self.details_ = {
            "components": self.mixture_.n_components,
            "covariance": self.mixture_.covariance_type,
        }
        return self

    def score_samples(self, X):
        return self.mixture_.score_samples(X)


class CrossValidatedKDE(BaseEstimator):
    """Gaussian kernels on all rows; cross-validation chooses their one width.

    Widths are multiples of Scott's. At most `rows` rows, divided among the folds, are held out to
    compare them.
    """

    def __init__(self, folds=5, rows=2000, factors=DEFAULT_FACTORS, random_state=None):
        self.folds = folds
        self.rows = rows
        self.factors = factors
        self.random_state = random_state

    def fit(self, X, max_time=None):
        order = np.random.default_rng(self.random_state).permutation(len(X))
        totals = np.zeros(len(self.factors))
        for fold in np.array_split(order, self.folds):
            held_out = X[fold[: self.rows // self.folds]]
            totals += _kernel_density(held_out, np.delete(X, fold, axis=0), self.factors).sum(0)
        factor = self.factors[totals.argmax()]
        self.centres_, self.factor_ = X, factor
        self.details_ = {"factor": factor}
        return self

    def score_samples(self, X):
        return _kernel_density(X, self.centres_, [self.factor_])[:, 0]


def _kernel_density(rows, centres, factors):
    """Log densities `(rows, factors)`, each by kernels of this multiple of Scott's width."""
    n, features = centres.shape
    widths = [factor * n ** (-1 / (features + 4)) for factor in factors]
    centres = torch.from_numpy(np.ascontiguousarray(centres))
    return map_blocks(
        lambda block: log_kernel_density(block, centres, widths),
        torch.from_numpy(np.ascontiguousarray(rows)),
        64,
    ).numpy()


METHODS = {
    GAUSSIAN: LedoitWolfGaussian,
    "Gaussian mixture": MixtureByBIC,
    "KDE": CrossValidatedKDE,
    "MAF": MAF,
    "NSF": NSF,
    ROUNDTRIP: Roundtrip,
}
"""Classes by their name in tables, cheap ones first; all take `random_state`."""
