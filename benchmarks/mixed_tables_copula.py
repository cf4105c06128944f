"""A Gaussian copula of tables with numbers, categories and missing cells."""

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri


class GaussianCopula:
    """Gaussian copula of numbers and categories, with missing cells.

    Every column is an ordered one: numbers by size, categories by frequency, where missing is a
    level of its own. A level's interval of the latent normal has the level's probability. Given the
    latent correlations, latent values are drawn within their intervals; given these, correlations
    are computed again. That is the extended rank likelihood of Hoff (2007, Annals of Applied
    Statistics 1, 265-283) with stochastic EM in place of the prior: ties do not weaken the
    correlations, as they do if latent values are drawn within the intervals independently.

    A number with missing cells has a further, binary latent column that says where it is missing;
    its own latent value is free there.

    Parameters
    ----------
    categories : list of str
        Columns that are categories.
    sweeps : int, default=40
        Sweeps over all columns; correlations are averaged over the second half.
    random_state : int, default=0
        Seed of the latent values and of the samples.
    """

    def __init__(self, categories: list[str], *, sweeps: int = 40, random_state: int = 0):
        self.categories = categories
        self.sweeps = sweeps
        self.random_state = random_state

    def fit(self, train: pd.DataFrame) -> "GaussianCopula":
        self._rng = np.random.default_rng(self.random_state)
        self.train_ = train
        self.levels_, lower, upper = [], [], []
        for name, missing in self._latent_columns(train):
            codes, first_rows = self._ordered(train[name], name, missing)
            counts = np.bincount(codes[codes >= 0], minlength=len(first_rows))
            bounds = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
            self.levels_.append((name, missing, bounds[1:], first_rows))
            free = codes < 0
            lower.append(np.where(free, 0, bounds[codes]))
            upper.append(np.where(free, 1, bounds[codes + 1]))
        lower, upper = np.array(lower), np.array(upper)  # (latent columns, rows)
        z = ndtri(self._rng.uniform(lower, upper))
        lower, upper = ndtri(lower), ndtri(upper)
        total = np.zeros((len(z), len(z)))
        correlation = np.corrcoef(z)
        for sweep in range(self.sweeps):
            for j in range(len(z)):
                z[j] = self._redrawn(j, z, correlation, lower[j], upper[j])
            correlation = np.corrcoef(z)
            if sweep >= self.sweeps // 2:
                total += correlation
        self.correlation_ = total / (self.sweeps - self.sweeps // 2)
        return self

    def sample(self, rows: int) -> pd.DataFrame:
        factor = np.linalg.cholesky(self.correlation_)
        u = ndtr(self._rng.normal(size=(rows, len(factor))) @ factor.T).T
        columns = {}
        for (name, missing, upper, first_rows), each in zip(self.levels_, u, strict=True):
            level = np.minimum(np.searchsorted(upper, each), len(upper) - 1)
            if missing:  # comes after its number; level 1 is missing
                columns[name] = columns[name].mask(level == 1)
            else:
                columns[name] = self.train_[name].iloc[first_rows[level]].reset_index(drop=True)
        return pd.DataFrame(columns).astype(self.train_.dtypes)

    def _latent_columns(self, train: pd.DataFrame) -> list[tuple[str, bool]]:
        """Name of each column, and again with True for a column that says where it is missing."""
        result = []
        for name in train:
            result.append((name, False))
            if name not in self.categories and train[name].isna().any():
                result.append((name, True))
        return result

    def _ordered(self, cells: pd.Series, name: str, missing: bool) -> tuple[np.ndarray, np.ndarray]:
        """Place of each cell's level in their order, -1 if free, and a row of each level."""
        if missing:
            codes = cells.isna().to_numpy().astype(int)
        elif name in self.categories:
            codes = pd.factorize(cells, use_na_sentinel=False)[0]
            order = np.argsort(-np.bincount(codes), kind="stable")
            codes = np.argsort(order)[codes]
        else:
            codes = pd.factorize(cells, sort=True)[0]
        known = np.flatnonzero(codes >= 0)
        return codes, known[np.unique(codes[known], return_index=True)[1]]

    def _redrawn(self, j, z, correlation, lower, upper):
        """Latent values of a column given those of the others, within their intervals."""
        others = np.arange(len(z)) != j
        weights = np.linalg.solve(correlation[np.ix_(others, others)], correlation[others, j])
        mean = weights @ z[others]
        sd = np.sqrt(max(1 - weights @ correlation[others, j], 1e-6))
        a, b = (lower - mean) / sd, (upper - mean) / sd
        # In the lower tail, where probabilities are precise.
        flip = a > -b
        a, b = np.where(flip, -b, a), np.where(flip, -a, b)
        draw = ndtri(self._rng.uniform(ndtr(a), ndtr(b)))
        draw = np.clip(draw, np.maximum(a, -1e3), np.minimum(b, 1e3))
        return mean + sd * np.where(flip, -draw, draw)
