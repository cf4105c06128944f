"""The paper's Laplace approximation, eq. (6)-(12): G is linear around H(x)."""

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
    """Approximate log p(x) by the closed form of eq. (12), which is exact if G is linear.

    Parameters
    ----------
    model : RoundtripModel
        Model with p(z) = N(0, I) and Gaussian noise whose width does not depend on z.
    x : Tensor
        Rows in scaled units, `(rows, features)`.

    Returns
    -------
    DensityEstimate
        One entry per row. The error is unknown, so that no row has converged.
    """
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
    # In units of sigma the noise is N(0, I), and λ of eq. (8) is 1.
    residual = (x.double() - generated) / sigma
    jacobian = jacobian / sigma[:, None]
    log_volume = sigma.log().sum()
    if model.latent_dim > features:
        return _wide_laplace(residual, start, jacobian) - log_volume
    gram = jacobian.mT @ jacobian  # A of eq. (8)
    projected = (jacobian.mT @ residual[..., None])[..., 0]  # b of eq. (8)
    identity = torch.eye(model.latent_dim, dtype=gram.dtype, device=gram.device)
    factor = torch.linalg.cholesky(identity + gram)  # of Σ⁻¹, eq. (11)
    mean = torch.cholesky_solve((projected - start)[..., None], factor)[..., 0]  # μ, eq. (11)
    # c₂ = c₁ - μᵀ Σ⁻¹ μ of eq. (10) is the minimum of the quadratic form v of eq. (9), at w = μ.
    # Evaluating v there avoids the difference of two large numbers.
    misfit = residual - (jacobian @ mean[..., None])[..., 0]
    minimum = (start + mean).square().sum(-1) + misfit.square().sum(-1)
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    # Logarithm of eq. (12); log det Σ = -log_det.
    return _log_constant(features) - log_volume - 0.5 * (log_det + minimum)


def _wide_laplace(residual: Tensor, start: Tensor, jacobian: Tensor) -> Tensor:
    """Return log p(x) of eq. (12) for m > n, by an n x n matrix that stays regular as sigma → 0.

    If G is linear around z̃ = H(x), x in units of sigma is Gaussian with mean G(z̃) - J z̃ and
    covariance I + J Jᵀ.
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
