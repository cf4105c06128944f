"""Kernel density estimation with one bandwidth for all standardised columns."""

import math
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from roundtrip.baselines.base import DensityBaseline
from roundtrip.baselines.budget import Budget
from roundtrip.density.blocks import map_blocks
from roundtrip.parameters import check_choice, check_numbers

BANDWIDTHS = ("scott", "silverman", "cv")

DEFAULT_FACTORS = tuple(float(f"{value:.2g}") for value in np.geomspace(0.05, 2.0, 24))

PAIRS_PER_BLOCK = 2**20
"""Distances in memory at a time: 8 MB, independent of the number of rows."""


class KDE(DensityBaseline):
    """Gaussian kernel density estimate: the mean of N(x | x_i, h² I) over the training rows.

    Parameters
    ----------
    bandwidth : {"scott", "silverman", "cv"}, default="cv"
        "scott" is ``n ** (-1 / (d + 4))`` for n rows of d features. "silverman" is Scott's times
        ``(4 / (d + 2)) ** (1 / (d + 4))``. "cv" is the multiple of Scott's with the best mean
        log-likelihood of the validation rows.
    factors : sequence of float, default=24 values from 0.05 to 2
        Multiples of Scott's bandwidth that "cv" tries.
    random_state : int, RandomState or None, default=None
        Seed of the split and of the order of the validation rows. If `max_time` is too short for
        all of them, the first ones choose the bandwidth.

    Attributes
    ----------
    bandwidth_ : float
        h in standardised units.
    centres_ : numpy.ndarray
        `(rows, features)` training rows in standardised units.
    validation_log_likelihood_ : float
        Mean over the validation rows, in the user's units.
    history_ : dict of lists
        "bandwidth" and "validation_log_likelihood", with one entry per bandwidth.

    Examples
    --------
    >>> import numpy as np
    >>> from roundtrip.baselines import KDE
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> est = KDE(random_state=0).fit(X)
    >>> est.score_samples(X[:3]).shape, est.sample(4).shape
    ((3,), (4, 2))
    """

    def __init__(
        self,
        bandwidth: str = "cv",
        *,
        factors: Sequence[float] = DEFAULT_FACTORS,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.factors = factors
        self.random_state = random_state

    def _check_settings(self) -> None:
        check_choice("bandwidth", self.bandwidth, BANDWIDTHS)
        check_numbers("factors", self.factors, above=0)

    def _fit(
        self,
        training: np.ndarray,
        validation: np.ndarray,
        *,
        budget: Budget,
        rng: np.random.RandomState,
    ) -> None:
        candidates = self._candidates(*training.shape)
        scores = _mean_log_densities(
            rng.permutation(validation), training, candidates, budget=budget
        )
        scores += self.scaling_.log_det
        self.centres_ = training
        self.bandwidth_ = float(candidates[scores.argmax()])
        self.validation_log_likelihood_ = float(scores.max())
        self.history_ = {
            "bandwidth": candidates.tolist(),
            "validation_log_likelihood": scores.tolist(),
        }

    def _candidates(self, rows: int, features: int) -> np.ndarray:
        scott = rows ** (-1 / (features + 4))
        if self.bandwidth == "scott":
            return np.array([scott])
        if self.bandwidth == "silverman":
            return np.array([scott * (4 / (features + 2)) ** (1 / (features + 4))])
        return scott * np.array(self.factors, dtype=np.float64)

    def _log_density(self, rows: np.ndarray) -> np.ndarray:
        centres = torch.from_numpy(self.centres_)
        return map_blocks(
            lambda block: log_kernel_density(block, centres, [self.bandwidth_])[:, 0],
            torch.from_numpy(rows),
            _rows_per_block(len(centres)),
        ).numpy()

    def _sample(self, n_samples: int, rng: np.random.RandomState) -> np.ndarray:
        centres = self.centres_[rng.randint(len(self.centres_), size=n_samples)]
        return centres + self.bandwidth_ * rng.standard_normal(centres.shape)


def log_kernel_density(x: Tensor, centres: Tensor, bandwidths: Sequence[float]) -> Tensor:
    """Return the log of the mean of N(x | centre, h² I) for each row and each bandwidth h.

    Parameters
    ----------
    x : Tensor
        `(rows, features)` float64.
    centres : Tensor
        `(n, features)` float64.
    bandwidths : sequence of float
        Bandwidths, which share the computation of the distances.

    Returns
    -------
    Tensor
        `(rows, len(bandwidths))` log densities.

    Examples
    --------
    >>> import torch
    >>> x = torch.zeros(1, 1, dtype=torch.float64)
    >>> log_kernel_density(x, x, [1.0])  # log N(0 | 0, 1)
    tensor([[-0.9189]], dtype=torch.float64)
    """
    n, features = centres.shape
    # A matrix product gives |x - c|² fast, and in float64 precisely enough. scikit-learn's
    # KernelDensity takes ten times as long for 16 columns, and far from the data its trees have
    # errors of thousands of nats.
    squares = torch.addmm(centres.square().sum(dim=1), x, centres.T, alpha=-2)
    squares += x.square().sum(dim=1, keepdim=True)
    nearest = squares.amin(dim=1, keepdim=True)
    squares -= nearest  # the largest kernel of each row becomes 1, so no sum underflows
    log_densities = []
    for h in bandwidths:
        log_sum = (squares * (-0.5 / h**2)).exp_().sum(dim=1).log()
        log_norm = math.log(n) + features * math.log(math.sqrt(2 * math.pi) * h)
        log_densities.append(log_sum - nearest[:, 0].clamp(min=0) * (0.5 / h**2) - log_norm)
    return torch.stack(log_densities, dim=1)


def _mean_log_densities(
    rows: np.ndarray, centres: np.ndarray, bandwidths: np.ndarray, *, budget: Budget
) -> np.ndarray:
    """Return the mean log density of `rows` per bandwidth; of the first ones if time is short."""
    total, done = np.zeros(len(bandwidths)), 0
    size = _rows_per_block(len(centres))
    while done < len(rows):
        start = time.perf_counter()
        block = torch.from_numpy(rows[done : done + size])
        densities = log_kernel_density(block, torch.from_numpy(centres), bandwidths.tolist())
        total += densities.sum(dim=0).numpy()
        done += len(block)
        if budget.left < time.perf_counter() - start:
            break
    return total / done


def _rows_per_block(n: int) -> int:
    return max(1, min(PAIRS_PER_BLOCK // n, 1024))
