"""The importance-weighted bound on log p(x): what likelihood training maximises."""

import math

import torch
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.model.core import RoundtripModel


def importance_weighted_bound(
    model: RoundtripModel, rows: Rows, *, n_draws: int, rng: torch.Generator
) -> Tensor:
    """Estimate log p(x) from below: log 1/K Σ_k p(x, z_k) / q(z_k | x) with K draws z_k ~ q(z | x).

    This is the logarithm of the estimate of eq. (5) with the encoder's posterior as proposal. Its
    mean is at most log p(x) and approaches it as K grows. The gradient treats the parameters of q
    in log q as constants ("sticking the landing"). The term left out has mean zero for K = 1 and
    only adds variance, most of all when q is close to the posterior.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    rows : Rows
        The rows x and their context.
    n_draws : int
        Number K of draws per row.
    rng : torch.Generator
        Source of the draws, on the device of the rows.

    Returns
    -------
    Tensor
        `(rows,)`, differentiable in all parameters of the model.
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
    """Return log q(z | x) up to a constant, with the parameters of q as constants.

    The value follows from the noise that z was made from; the gradient in z is -factor⁻ᵀ noise.
    """
    slope = torch.linalg.solve_triangular(factor.mT, noise[..., None], upper=True)[..., 0]
    value = -0.5 * noise.square().sum(-1) - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return value - ((z - z.detach()) * slope).sum(-1)
