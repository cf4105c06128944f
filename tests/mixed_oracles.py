"""A table of several kinds of columns whose density is known, whatever cells are missing."""

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, poisson

COLOURS = ("red", "green", "blue", "grey")
SIZES = ("small", "medium", "large", "huge")
COLUMNS = ("height", "weight", "colour", "size", "visits")


class MixedMixture:
    """A mixture of three groups: two correlated numbers, a category, an ordered one, a count.

    Within a group the category, the ordered category and the count are independent.
    """

    shares = np.array([0.5, 0.3, 0.2])
    means = np.array([[170.0, 65.0], [180.0, 90.0], [150.0, 50.0]])
    spreads = np.array([[8.0, 6.0], [5.0, 12.0], [6.0, 4.0]])
    correlations = np.array([0.7, 0.2, -0.5])
    colours = np.array([[0.6, 0.2, 0.1, 0.1], [0.05, 0.15, 0.7, 0.1], [0.1, 0.5, 0.1, 0.3]])
    sizes = np.array([[0.2, 0.5, 0.2, 0.1], [0.05, 0.1, 0.35, 0.5], [0.6, 0.3, 0.08, 0.02]])
    rates = np.array([3.0, 12.0, 0.8])

    def covariance(self, group):
        first, second = self.spreads[group]
        both = self.correlations[group] * first * second
        return np.array([[first**2, both], [both, second**2]])

    def table(self, rows, seed):
        """Draw a DataFrame."""
        rng = np.random.default_rng(seed)
        group = rng.choice(3, size=rows, p=self.shares)
        z = rng.normal(size=(rows, 2))
        factors = np.stack([np.linalg.cholesky(self.covariance(k)) for k in range(3)])
        numbers = self.means[group] + np.einsum("nij,nj->ni", factors[group], z)
        pick = {
            name: (rng.random(rows)[:, None] > p.cumsum(1)[group]).sum(1).clip(0, 3)
            for name, p in (("colour", self.colours), ("size", self.sizes))
        }
        return pd.DataFrame(
            {
                "height": numbers[:, 0],
                "weight": numbers[:, 1],
                "colour": np.array(COLOURS, dtype=object)[pick["colour"]],
                "size": pd.Categorical.from_codes(pick["size"], SIZES, ordered=True),
                "visits": rng.poisson(self.rates[group]),
            }
        )

    def log_density(self, table):
        """Log of density times probability of the cells that are not missing."""
        parts = np.log(self.shares) + sum(self._log_factors(table))
        return logsumexp(parts, axis=1)

    def _log_factors(self, table):
        """Log density or probability of the observed cells given each group, `(rows, 3)` each."""
        numbers = table[["height", "weight"]].to_numpy(dtype=float)
        known = ~np.isnan(numbers)
        gaussian = np.zeros((len(table), 3))
        for group in range(3):
            covariance = self.covariance(group)
            for which in ([0, 1], [0], [1]):
                pattern = np.isin([0, 1], which)
                rows = (known == pattern).all(axis=1)
                if rows.any():
                    law = multivariate_normal(
                        self.means[group][which], covariance[np.ix_(which, which)]
                    )
                    gaussian[rows, group] = law.logpdf(numbers[rows][:, which])
        yield gaussian
        for name, levels, p in (("colour", COLOURS, self.colours), ("size", SIZES, self.sizes)):
            place = pd.Categorical(table[name].astype(object), categories=levels).codes
            yield np.where((place >= 0)[:, None], np.log(p.T[place]), 0.0)
        visits = table["visits"].to_numpy(dtype=float, na_value=np.nan)
        count = np.nan_to_num(visits)[:, None]
        yield np.where(np.isnan(visits)[:, None], 0.0, poisson.logpmf(count, self.rates))


def with_holes(table, mask):
    """The table with the cells of a `(rows, columns)` mask missing."""
    table = table.astype({"visits": "Int64"})
    return table.mask(pd.DataFrame(mask, columns=table.columns, index=table.index))


def missing_at_random(table, share, seed):
    """Cells missing completely at random; every row keeps one."""
    rng = np.random.default_rng(seed)
    mask = rng.random(table.shape) < share
    mask[np.arange(len(mask)), rng.integers(mask.shape[1], size=len(mask))] = False
    return with_holes(table, mask)


def missing_by_height(table, seed):
    """Weight, size and visits missing for most tall people, for few others; height is observed."""
    rng = np.random.default_rng(seed)
    share = np.where(table["height"] > 175, 0.6, 0.1)
    mask = np.zeros(table.shape, dtype=bool)
    for name in ("weight", "size", "visits"):
        mask[:, COLUMNS.index(name)] = rng.random(len(table)) < share
    return with_holes(table, mask)
