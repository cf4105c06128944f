"""The methods of prediction.py: what they say of one column given all others.

Those of a number return a `Steps` or a `Normal`, which have log densities, probabilities below a
value and means for each row; those of a category return probabilities of its levels.
"""

import json
import os
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from mixed_tables_metrics import encoded
from parts_data import categories_of
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from roundtrip import DensityWarning, Roundtrip

ROUNDTRIP = "Roundtrip"
DRAWS = 2048
"""Draws of z for each row of Roundtrip."""

LEVELS = np.arange(1, 20) / 20
"""Probabilities of the quantiles that trees predict."""

BINS = 40
"""Bins of equal frequency whose probabilities trees predict."""

NARROWEST = 1e-3
"""Smallest distance of two predicted quantiles, in standard deviations of the column."""

TREES, RATE, VALIDATION, PATIENCE = 800, 0.05, 0.1, 30
"""Of NGBoost."""

SCRIPT = Path(__file__).with_name("prediction_ngboost.py")


@dataclass(frozen=True)
class Normal:
    """Normal distributions, one per row."""

    loc: np.ndarray
    scale: np.ndarray

    def log_prob(self, y):
        return norm.logpdf(y, self.loc, self.scale)

    def cdf(self, y):
        return norm.cdf(y, self.loc, self.scale)

    def mean(self):
        return self.loc


@dataclass(frozen=True)
class Steps:
    """Densities that are constant between edges, with exponential tails beyond them.

    Attributes
    ----------
    edges : numpy.ndarray
        Increasing, `(rows, edges)`.
    masses : numpy.ndarray
        Probabilities between edges, and of the lower and of the upper tail as first and last
        columns, `(rows, edges + 1)`.
    """

    edges: np.ndarray
    masses: np.ndarray

    def _tails(self):
        """Scales of both tails: their density starts as high as that of the next step."""
        widths = np.diff(self.edges, axis=1)[:, [0, -1]]
        return widths * self.masses[:, [0, -1]] / self.masses[:, [1, -2]]

    def _place(self, y):
        return (self.edges <= y[:, None]).sum(axis=1)

    def log_prob(self, y):
        rows, place, last = np.arange(len(y)), self._place(y), self.edges.shape[1]
        widths = np.diff(self.edges, axis=1)
        inner = widths[rows, np.clip(place - 1, 0, last - 2)]
        low, high = self._tails().T
        beyond = np.where(place == 0, (self.edges[:, 0] - y) / low, (y - self.edges[:, -1]) / high)
        tail = -beyond - np.log(np.where(place == 0, low, high))
        inside = (place > 0) & (place < last)
        return np.log(self.masses[rows, place]) + np.where(inside, -np.log(inner), tail)

    def cdf(self, y):
        rows, place, last = np.arange(len(y)), self._place(y), self.edges.shape[1]
        below = np.cumsum(self.masses, axis=1)
        start = self.edges[rows, np.clip(place - 1, 0, last - 2)]
        share = (y - start) / np.diff(self.edges, axis=1)[rows, np.clip(place - 1, 0, last - 2)]
        low, high = self._tails().T
        lower = self.masses[:, 0] * np.exp(-np.maximum(self.edges[:, 0] - y, 0) / low)
        upper = 1 - self.masses[:, -1] * np.exp(-np.maximum(y - self.edges[:, -1], 0) / high)
        inner = below[rows, np.maximum(place - 1, 0)] + share * self.masses[rows, place]
        return np.where(place == 0, lower, np.where(place == last, upper, inner))

    def mean(self):
        low, high = self._tails().T
        middles = (self.edges[:, 1:] + self.edges[:, :-1]) / 2
        tails = self.masses[:, 0] * (self.edges[:, 0] - low)
        tails += self.masses[:, -1] * (self.edges[:, -1] + high)
        return (self.masses[:, 1:-1] * middles).sum(axis=1) + tails


@dataclass(frozen=True)
class OfRoundtrip:
    """A `Conditional` of the library."""

    conditional: object

    def log_prob(self, y):
        return self.conditional.log_prob(y).to_numpy()

    def cdf(self, y):
        return self.conditional.cdf(y).to_numpy()

    def mean(self):
        return self.conditional.mean().to_numpy()


def roundtrip(train, test, target, seed, budget, python):
    """Roundtrip with default settings, fitted to all columns alike."""
    est = Roundtrip(random_state=seed)
    est.fit(train, max_time=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        p = est.conditional(test.drop(columns=target), target, draws=DRAWS)
        error = p.log_prob(test[target], with_error=True)[1]
    details = {
        "converged": float(p.converged.mean()),
        "typical_error": float(np.median(error)),
        "epochs": est.n_iter_,
        "latent_dim": est.latent_dim_,
    }
    return (p.probabilities() if target in categories_of(train) else OfRoundtrip(p)), details


def _features(train, test, target):
    both = pd.concat([train, test], ignore_index=True).drop(columns=target)
    X, categorical = encoded(both, categories_of(both))
    return X[: len(train)], X[len(train) :], categorical


def classifier(train, test, target, seed, budget, python):
    """scikit-learn's HistGradientBoostingClassifier."""
    X, new, categorical = _features(train, test, target)
    trees = HistGradientBoostingClassifier(
        categorical_features=categorical, early_stopping=True, random_state=seed
    )
    trees.fit(X, train[target])
    return pd.DataFrame(trees.predict_proba(new), columns=trees.classes_), {}


def quantiles(train, test, target, seed, budget, python):
    """scikit-learn's HistGradientBoostingRegressor for each of 19 quantiles."""
    X, new, categorical = _features(train, test, target)
    found = np.column_stack(
        [
            HistGradientBoostingRegressor(
                loss="quantile",
                quantile=q,
                categorical_features=categorical,
                early_stopping=True,
                random_state=seed,
            )
            .fit(X, train[target])
            .predict(new)
            for q in LEVELS
        ]
    )
    spread = train[target].std()
    edges = np.sort(found, axis=1) + NARROWEST * spread * np.arange(len(LEVELS))
    masses = np.full((len(edges), len(LEVELS) + 1), LEVELS[0])
    return Steps(edges, masses), {}


def bins(train, test, target, seed, budget, python):
    """scikit-learn's HistGradientBoostingClassifier of bins of equal frequency."""
    X, new, categorical = _features(train, test, target)
    inner = np.unique(np.quantile(train[target], np.arange(1, BINS) / BINS))
    y = np.searchsorted(inner, train[target], side="right")
    trees = HistGradientBoostingClassifier(
        categorical_features=categorical, early_stopping=True, random_state=seed
    )
    p = trees.fit(X, y).predict_proba(new)
    return Steps(np.tile(inner, (len(new), 1)), np.maximum(p, 1e-12)), {}


def ngboost(train, test, target, seed, budget, python):
    """NGBoost with normal distributions; a tenth of the rows ends its training."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_parquet(folder / "train.parquet")
        test.to_parquet(folder / "test.parquet")
        request = {"target": target, "seed": seed, "trees": TREES, "rate": RATE}
        request |= {"validation": VALIDATION, "patience": PATIENCE}
        (folder / "request.json").write_text(json.dumps(request))
        subprocess.run(
            [python, SCRIPT, folder], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        found = pd.read_parquet(folder / "found.parquet")
    return Normal(found["mean"].to_numpy(), found["std"].to_numpy()), {}


NGBOOST = "NGBoost"
METHODS = {
    "number": {
        "quantiles by gradient boosting": quantiles,
        "bins by gradient boosting": bins,
        NGBOOST: ngboost,
        ROUNDTRIP: roundtrip,
    },
    "category": {"gradient boosting": classifier, ROUNDTRIP: roundtrip},
}
"""Methods by the kind of the column. Each is given training and test rows, the column, a seed, the
seconds of Roundtrip's fit and the Python of NGBoost; it returns its prediction and what else is
recorded."""
