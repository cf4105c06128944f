"""The prior p(z) fitted to the codes of the rows: a mixture of Gaussians.

Training pulls the codes of all rows towards N(0, I), but does not get there. Regions of the prior
stay empty, so that samples from them look like no row, and other regions hold too many codes. The
p(z) with the highest bound on log p(x) is the average of q(z | x) over the rows. A mixture of
Gaussians fitted to draws from it takes seconds.
"""

import math
import time

import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.density.blocks import ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.model.core import RoundtripModel
from roundtrip.model.prior import GaussianMixture
from roundtrip.training.em import MixtureByEM

ROWS_PER_NUMBER = 5
"""Fewest training rows per number of the mixture."""

MOST_ROWS = 20_000
"""Largest number of rows that the mixture is fitted to."""

ITERATIONS = 50
SETTLED = 1e-3
"""Gain of the mean log-likelihood per iteration below which EM stops."""

REGULARISATION = 1e-3

NORMAL_SHARE = 0.02
"""Weight of N(0, I) in the mixture. It dominates far from all codes, as without a mixture."""


def fit_prior(
    model: RoundtripModel,
    training: Rows,
    validation: Rows | None,
    *,
    most_components: int,
    seed: int,
    seconds: float | None = None,
) -> tuple[GaussianMixture | None, float]:
    """Fit a mixture to draws of q(z | x).

    N(0, I) is kept if the fit is interrupted by Ctrl-C or fails, so that the training is not lost.

    Parameters
    ----------
    model : RoundtripModel
        Trained model whose encoder gives a posterior.
    training, validation : Rows
        Rows to fit the mixture to and to compare it with N(0, I) on, as the encoder takes them.
        Without validation rows the mixture is used in any case.
    most_components : int
        Largest number of Gaussians.
    seed : int
        Seed of the draws and of EM.
    seconds : float, default=None
        Time limit of EM.

    Returns
    -------
    prior : GaussianMixture or None
        The mixture, or None if N(0, I) is no worse on the validation rows.
    gain : float
        Gain of log p(z) over N(0, I) in nats per validation row, 0 without a mixture.
    """
    try:
        return _fit_prior(model, training, validation, most_components, seed, seconds)
    except (KeyboardInterrupt, ValueError, np.linalg.LinAlgError):
        return None, 0.0


def _fit_prior(
    model: RoundtripModel,
    training: Rows,
    validation: Rows | None,
    most_components: int,
    seed: int,
    seconds: float | None,
) -> tuple[GaussianMixture | None, float]:
    start = time.perf_counter()
    dim = model.latent_dim
    numbers = (dim + 1) * (dim + 2) / 2
    components = min(most_components, int(len(training) / (ROWS_PER_NUMBER * numbers)))
    if components < 2:
        return None, 0.0
    rng = torch.Generator(training.device).manual_seed(seed)
    codes = drawn_codes(model, training, rng)
    held_out = None if validation is None else drawn_codes(model, validation, rng)
    if not all(np.isfinite(part).all() for part in (codes, held_out) if part is not None):
        return None, 0.0
    mixture = MixtureByEM(
        components,
        reg_covar=REGULARISATION,
        init_params="k-means++",
        random_state=seed % 2**32,
        warm_start=True,
        max_iter=1,
    )
    bound = -math.inf
    for _ in range(ITERATIONS):  # one in each call
        before, bound = bound, mixture.fit(codes).lower_bound_
        late = seconds is not None and time.perf_counter() - start > seconds
        if late or bound - before < SETTLED:
            break
    prior = with_normal(mixture.weights_, mixture.means_, mixture.covariances_)
    if held_out is None:
        return prior.to(model.device), 0.0
    ours = prior.log_prob(torch.from_numpy(held_out)).numpy()
    gain = float((ours - multivariate_normal(np.zeros(dim)).logpdf(held_out)).mean())
    return (prior.to(model.device), gain) if gain > 0 else (None, 0.0)


def with_normal(
    weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, *, width: float = 1.0
) -> GaussianMixture:
    """Return a mixture of these Gaussians and, with a small weight, N(0, width² I)."""
    dim = means.shape[1]
    normal = width**2 * np.eye(dim)[None]
    factors = np.linalg.cholesky(np.concatenate([covariances, normal]))
    weights = np.append((1 - NORMAL_SHARE) * weights, NORMAL_SHARE)
    means = np.concatenate([means, np.zeros((1, dim))])
    return GaussianMixture(*(torch.from_numpy(part) for part in (weights, means, factors)))


@torch.no_grad()
def drawn_codes(model: RoundtripModel, rows: Rows, rng: torch.Generator) -> np.ndarray:
    """Draw one code from q(z | x) per row, `(rows, latent_dim)` float64."""

    def of_block(x: Tensor, context: Tensor) -> Tensor:
        mean, factor = model.posterior(x, context)
        return torch.cat([mean, factor.flatten(1)], dim=1)

    dim = model.latent_dim
    mean, factor = map_blocks(of_block, (rows.x, rows.context), ROWS_PER_ENCODER_CALL).tensor_split(
        [dim], dim=1
    )
    noise = torch.randn(len(rows), dim, 1, generator=rng, device=rows.device, dtype=mean.dtype)
    draws = mean + (factor.unflatten(1, (dim, dim)) @ noise)[..., 0]
    return draws.double().cpu().numpy()
