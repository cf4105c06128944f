"""`Gaussians`: the density of a linear Roundtrip model, whose integral over z has a closed form.

With a linear generator, a mixture prior and Gaussian noise, p(x) = ∫ p(x | z) p(z) dz is a mixture
of Gaussians, and so is every p(x_j | other features). Nothing is sampled, and EM takes a second.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import logsumexp, ndtr

from roundtrip.training.em import MixtureByEM

MOST_ROWS, MOST_COMPONENTS = 10_000, 10

ROWS_PER_COMPONENT, ROWS_PER_FEATURE = 30, 2
"""Fewest rows for each component beyond the first, at all and for each feature."""

NOISE = 0.1
"""Variance of the noise, in robust units: finer structure than that is not learnt."""

NUMBERS_PER_BLOCK = 2**21
HALVINGS = 40


@dataclass(frozen=True)
class Gaussians:
    """p(x) = Σ_k weight_k N(x | mean_k, covariance_k).

    Attributes
    ----------
    log_weights, means, precisions : numpy.ndarray
        `(components,)`, `(components, features)` and `(components, features, features)`.

    Examples
    --------
    >>> one = Gaussians(np.zeros(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> one.log_density(np.zeros((1, 2))).round(3).tolist()
    [-1.838]
    >>> one.given_others(np.zeros((1, 2))).round(3).tolist()
    [[0.919, 0.919]]
    >>> low, high = one.ranges(np.zeros((1, 2)), 0.9)
    >>> high.round(2).tolist()
    [[1.64, 1.64]]
    """

    log_weights: np.ndarray
    means: np.ndarray
    precisions: np.ndarray

    @classmethod
    def fit(
        cls,
        rows: np.ndarray,
        seed: int,
        *,
        noise: float = NOISE,
        components: int = MOST_COMPONENTS,
    ) -> Self:
        """Fit to `(rows, features)`, with fewer components in small and wide tables."""
        rows = rows[:MOST_ROWS]
        count, features = rows.shape
        affordable = 1 + min(count / ROWS_PER_COMPONENT, count / (ROWS_PER_FEATURE * features))
        mixture = MixtureByEM(
            min(int(affordable), components, count),
            reg_covar=noise,
            max_iter=50,
            random_state=seed,
        ).fit(rows)
        return cls(np.log(mixture.weights_), mixture.means_, mixture.precisions_)

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """log p(x) of `(rows, features)`, `(rows,)`."""
        return np.concatenate([logsumexp(self._parts(b)[0], axis=1) for b in self._blocks(rows)])

    def given_others(self, rows: np.ndarray) -> np.ndarray:
        """-log p(x_j | other features) of each cell, `(rows, features)`."""
        return np.concatenate([self._given_others(block) for block in self._blocks(rows)])

    def ranges(self, rows: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the middle `share` of each p(x_j | other features), `(rows, features)` each."""
        blocks = [self._ranges(block, share) for block in self._blocks(rows)]
        low, high = zip(*blocks, strict=True)
        return np.concatenate(low), np.concatenate(high)

    def _blocks(self, rows: np.ndarray) -> list[np.ndarray]:
        size = max(1, NUMBERS_PER_BLOCK // self.means.size)
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def _parts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log(weight_k N_k), `(rows, components)`, and precision times deviation."""
        deviation = rows[:, None] - self.means
        slopes = np.stack(
            [deviation[:, k] @ each for k, each in enumerate(self.precisions)], axis=1
        )
        log_det = np.linalg.slogdet(self.precisions)[1]
        constant = 0.5 * (log_det - rows.shape[1] * math.log(2 * math.pi)) + self.log_weights
        return constant - 0.5 * (deviation * slopes).sum(axis=2), slopes

    def _without(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return log p(x), and by component log p(k, others), mean and precision of each cell."""
        joint, slopes = self._parts(rows)
        precision = np.diagonal(self.precisions, axis1=1, axis2=2)
        residual = slopes / precision  # x_j minus its mean given the other features
        of_cell = 0.5 * np.log(precision / (2 * math.pi)) - 0.5 * precision * residual**2
        return joint, joint[..., None] - of_cell, rows[:, None] - residual, precision

    def _given_others(self, rows: np.ndarray) -> np.ndarray:
        joint, without, _, _ = self._without(rows)
        return logsumexp(without, axis=1) - logsumexp(joint, axis=1)[:, None]

    def _ranges(self, rows: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        _, without, mean, precision = self._without(rows)
        weight = np.exp(without - logsumexp(without, axis=1, keepdims=True))
        width = 1 / np.sqrt(precision)
        outer = (mean - 9 * width).min(axis=1), (mean + 9 * width).max(axis=1)
        ends = []
        for level in (0.5 - share / 2, 0.5 + share / 2):
            low, high = (each.copy() for each in outer)
            for _ in range(HALVINGS):  # the distribution function rises: bisection
                middle = (low + high) / 2
                below = (weight * ndtr((middle[:, None] - mean) / width)).sum(axis=1) < level
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            ends.append((low + high) / 2)
        return ends[0], ends[1]
