"""Maxima of p(x, z) over z by damped Gauss-Newton steps (Levenberg-Marquardt), all rows at once."""

import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.density.jacobian import generator_jacobian
from roundtrip.model import RoundtripModel

ROWS_PER_CALL = 256


def find_modes(
    model: RoundtripModel, x: Tensor, start: Tensor, *, sigma: float, steps: int
) -> tuple[Tensor, Tensor]:
    """Climb from `start`, `(rows, latent_dim)`, towards a maximum of p(x, z) in z.

    Returns the best points found and the lower Cholesky factors of I + JᵀJ/sigma² there, the
    precision of the posterior if G were linear (eq. 11). Costs `steps + 1` evaluations of G with
    its Jacobian.
    """
    best = start.double()
    value, gradient, precision = _expansion(model, x, best, sigma)
    damping = torch.full_like(value, 0.01)
    for _ in range(steps):
        damped = precision + torch.diag_embed(
            damping[:, None] * precision.diagonal(dim1=-2, dim2=-1)
        )
        factor = torch.linalg.cholesky(damped)
        trial = best - torch.cholesky_solve(gradient[..., None], factor)[..., 0]
        new_value, new_gradient, new_precision = _expansion(model, x, trial, sigma)
        better = new_value < value
        damping = torch.where(better, damping * 0.1, damping * 10)
        best = torch.where(better[:, None], trial, best)
        value = torch.where(better, new_value, value)
        gradient = torch.where(better[:, None], new_gradient, gradient)
        precision = torch.where(better[:, None, None], new_precision, precision)
    return best, torch.linalg.cholesky(precision)


def _expansion(
    model: RoundtripModel, x: Tensor, z: Tensor, sigma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """v(x, z) / 2 of eq. (4) with its gradient and Gauss-Newton curvature, for each row."""
    features, latent_dim = x.shape[1], z.shape[1]

    def flat(block: Tensor) -> Tensor:
        generated, jacobian = generator_jacobian(model, block)
        return torch.cat([generated, jacobian.flatten(1)], dim=1).double()

    both = map_blocks(flat, z, ROWS_PER_CALL)
    generated, jacobian = both[:, :features], both[:, features:].unflatten(1, (features, -1))
    residual = (x - generated) / sigma
    jacobian = jacobian / sigma
    value = 0.5 * (z.square().sum(1) + residual.square().sum(1))
    gradient = z - (jacobian.mT @ residual[..., None])[..., 0]
    identity = torch.eye(latent_dim, dtype=z.dtype, device=z.device)
    precision = identity + jacobian.mT @ jacobian
    return torch.nan_to_num(value, nan=torch.inf), gradient, precision
