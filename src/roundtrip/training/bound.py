"""The importance-weighted bound on log p(x): what likelihood training maximises."""

import math

import torch
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.model.core import RoundtripModel


def importance_weighted_bound(
    model: RoundtripModel, rows: Rows, *, n_draws: int, rng: torch.Generator
) -> Tensor:
    """log 1/K Σ_k p(x, z_k) / q(z_k | x) with K draws from the encoder's posterior, `(rows,)`.

    Its mean is at most log p(x) and grows towards it with K. In the gradient q's density is taken
    as given ("sticking the landing"): the part left out has mean zero at K = 1 and only adds
    noise, the more, the better q is.
    """
    x = rows.x
    mean, factor = model.posterior(x, rows.context)
    noise = torch.randn(n_draws, *mean.shape, generator=rng, device=x.device, dtype=mean.dtype)
    z = mean + (factor @ noise[..., None])[..., 0]
    log_q = _log_posterior(z, noise, factor.detach())
    log_ratio = model.prior.log_kernel(z) - log_q  # the constants of N(0, I) and q cancel
    context = rows.context.expand(n_draws, -1, -1).flatten(0, 1)
    outputs = model.decode(z.flatten(0, 1), context).view(n_draws, len(x), -1)
    log_weights = model.noise.log_prob(outputs, x).sum(-1) + log_ratio
    return torch.logsumexp(log_weights, dim=0) - math.log(n_draws)


def _log_posterior(z: Tensor, noise: Tensor, factor: Tensor) -> Tensor:
    """log q(z | x) up to a constant, with q's own parameters taken as given.

    Its value follows from the noise that made z; its gradient in z is -factor⁻ᵀ noise.
    """
    slope = torch.linalg.solve_triangular(factor.mT, noise[..., None], upper=True)[..., 0]
    value = -0.5 * noise.square().sum(-1) - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return value - ((z - z.detach()) * slope).sum(-1)
