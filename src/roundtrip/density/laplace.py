"""The closed form of eq. (6)-(12): G linearised at H(x), the integral over z then Gaussian."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp

from roundtrip.density.blocks import map_blocks
from roundtrip.density.result import DensityEstimate
from roundtrip.model import RoundtripModel

ROWS_PER_CALL = 256


def laplace(model: RoundtripModel, x: Tensor, *, sigma: float) -> DensityEstimate:
    """Approximate log p(x) for `(rows, features)` points; exact when G is linear."""
    log_density = map_blocks(lambda block: _laplace(model, block, sigma), x, ROWS_PER_CALL)
    unknown = np.full(len(x), math.nan)
    return DensityEstimate(
        log_density=log_density.cpu().numpy(),
        std_error=unknown,
        ess=unknown.copy(),
        n_evaluations=np.full(len(x), 1 + model.latent_dim),
        method="laplace",
    )


@torch.no_grad()
def _laplace(model: RoundtripModel, x: Tensor, sigma: float) -> Tensor:
    features = x.shape[1]
    start = torch.nan_to_num(model.encode(x), nan=0.0, posinf=0.0, neginf=0.0)
    generated, jacobian = generator_jacobian(model, start)
    start, generated, jacobian = start.double(), generated.double(), jacobian.double()
    residual = x.double() - generated
    precision = 1 / sigma**2  # lambda in eq. (8)
    gram = jacobian.mT @ jacobian  # A in eq. (8)
    projected = (jacobian.mT @ residual[..., None])[..., 0]  # b in eq. (8)
    identity = torch.eye(model.latent_dim, dtype=gram.dtype, device=gram.device)
    factor = torch.linalg.cholesky(identity + precision * gram)  # of Sigma^-1 in eq. (11)
    mean = torch.cholesky_solve((precision * projected - start)[..., None], factor)[..., 0]
    # c_2 = c_1 - mu' Sigma^-1 mu of eq. (10) is the minimum of the quadratic v, which is reached
    # at mu; evaluating v there avoids the difference of two large numbers.
    misfit = residual - (jacobian @ mean[..., None])[..., 0]
    minimum = (start + mean).square().sum(-1) + precision * misfit.square().sum(-1)
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    # eq. (12) in logarithms
    return (
        -0.5 * features * math.log(2 * math.pi)
        - features * math.log(sigma)
        - 0.5 * log_det
        - 0.5 * minimum
    )


def generator_jacobian(model: RoundtripModel, z: Tensor) -> tuple[Tensor, Tensor]:
    """G(z), `(rows, features)`, and its Jacobian, `(rows, features, latent_dim)`.

    Forward mode, one direction at a time for all rows together: works for any module G.
    """
    columns = []
    for direction in torch.eye(model.latent_dim, dtype=z.dtype, device=z.device):
        generated, column = jvp(model.generate, (z,), (direction.expand_as(z),))[:2]
        columns.append(column)
    return generated, torch.stack(columns, dim=-1)
