"""The closed form of eq. (6)-(12): G linearised at H(x), the integral over z then Gaussian."""

import math

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.density.jacobian import generator_jacobian, rows_per_call
from roundtrip.density.result import DensityEstimate
from roundtrip.model.core import RoundtripModel

MOST_ROWS_PER_CALL = 256


def laplace(model: RoundtripModel, x: Tensor) -> DensityEstimate:
    """Approximate log p(x) for `(rows, features)` points; exact when G is linear."""
    size = rows_per_call(model, x.shape[1], MOST_ROWS_PER_CALL)
    log_density = map_blocks(lambda block: _laplace(model, block), x, size)
    unknown = np.full(len(x), math.nan)
    return DensityEstimate(
        log_density=log_density.cpu().numpy(),
        std_error=unknown,
        ess=unknown.copy(),
        n_evaluations=np.full(len(x), 1 + model.latent_dim),
        pareto_k=unknown.copy(),
        converged=np.zeros(len(x), dtype=bool),
        method="laplace",
    )


@torch.no_grad()
def _laplace(model: RoundtripModel, x: Tensor) -> Tensor:
    features = x.shape[1]
    start = torch.nan_to_num(model.encode(x), nan=0.0, posinf=0.0, neginf=0.0)
    generated, jacobian = generator_jacobian(model, start)
    start, generated, jacobian = start.double(), generated.double(), jacobian.double()
    sigma = model.sigma.expand(features)
    # In units of sigma the noise is N(0, I), and lambda in eq. (8) is 1.
    residual = (x.double() - generated) / sigma
    jacobian = jacobian / sigma[:, None]
    log_volume = sigma.log().sum()
    if model.latent_dim > features:
        return _wide_laplace(residual, start, jacobian) - log_volume
    gram = jacobian.mT @ jacobian  # A in eq. (8)
    projected = (jacobian.mT @ residual[..., None])[..., 0]  # b in eq. (8)
    identity = torch.eye(model.latent_dim, dtype=gram.dtype, device=gram.device)
    factor = torch.linalg.cholesky(identity + gram)  # of Sigma^-1 in eq. (11)
    mean = torch.cholesky_solve((projected - start)[..., None], factor)[..., 0]
    # c_2 = c_1 - mu' Sigma^-1 mu of eq. (10) is the minimum of the quadratic v, which is reached
    # at mu; evaluating v there avoids the difference of two large numbers.
    misfit = residual - (jacobian @ mean[..., None])[..., 0]
    minimum = (start + mean).square().sum(-1) + misfit.square().sum(-1)
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    # eq. (12) in logarithms
    return _log_constant(features) - log_volume - 0.5 * (log_det + minimum)


def _wide_laplace(residual: Tensor, start: Tensor, jacobian: Tensor) -> Tensor:
    """The same number for m > n, from an n x n matrix that stays regular as sigma goes to 0.

    With G linearised, x in units of sigma is Gaussian with mean G(z~) - J z~ and covariance
    I + J Jᵀ.
    """
    features = residual.shape[1]
    identity = torch.eye(features, dtype=jacobian.dtype, device=jacobian.device)
    factor = torch.linalg.cholesky(identity + jacobian @ jacobian.mT)
    centred = residual[..., None] + jacobian @ start[..., None]
    distance = torch.linalg.solve_triangular(factor, centred, upper=False).square().sum((1, 2))
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return _log_constant(features) - 0.5 * (log_det + distance)


def _log_constant(features: int) -> float:
    return -0.5 * features * math.log(2 * math.pi)
