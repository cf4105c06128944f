"""Gaussian approximations of the posterior p(z | x) with few evaluations of G, all rows at once.

First a maximum of p(x, z) by damped Gauss-Newton steps (Levenberg-Marquardt), then G is replaced
by the linear map that fits it best over the width of the posterior. The slope of a network of
leaky ReLU at one point says little about that width; the points on its rim say more.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.jacobian import generator_jacobian
from roundtrip.model import RoundtripModel

ROWS_PER_CALL = 256
FIRST_DAMPING = 0.01


@dataclass
class Expansion:
    """v(x, z) / 2 of eq. (4) around one z a row: as much work as 1 + latent_dim evaluations of G.

    Attributes
    ----------
    z : `(rows, latent_dim)`.
    value, gradient : of v/2, `(rows,)` and `(rows, latent_dim)`.
    precision : I + JᵀJ/sigma², the precision of the posterior if G were linear (eq. 11).
    generated, jacobian : G(z) and J, `(rows, features)` and `(rows, features, latent_dim)`.
    """

    z: Tensor
    value: Tensor
    gradient: Tensor
    precision: Tensor
    generated: Tensor
    jacobian: Tensor

    @property
    def covariance_factor(self) -> Tensor:
        """Lower Cholesky factor of the inverse precision."""
        return torch.linalg.cholesky(torch.linalg.inv(self.precision))

    def gauss_newton(self, damping: Tensor) -> Tensor:
        """Where a damped Gauss-Newton step leads, `(rows, latent_dim)`."""
        diagonal = damping[:, None] * self.precision.diagonal(dim1=-2, dim2=-1)
        factor = torch.linalg.cholesky(self.precision + torch.diag_embed(diagonal))
        return self.z - torch.cholesky_solve(self.gradient[..., None], factor)[..., 0]

    def replaced(self, where: Tensor, other: "Expansion") -> "Expansion":
        """This expansion with `other` in the rows that the mask `where` marks."""
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return Expansion(
            *(torch.where(where.view(-1, *[1] * (old.ndim - 1)), new, old) for old, new in pairs)
        )


def expand(model: RoundtripModel, x: Tensor, z: Tensor, *, sigma: float) -> Expansion:
    """The expansion of every row of x around the same row of z."""
    features, latent_dim = x.shape[1], z.shape[1]

    def flat(block: Tensor) -> Tensor:
        generated, jacobian = generator_jacobian(model, block)
        return torch.cat([generated, jacobian.flatten(1)], dim=1).double()

    both = map_blocks(flat, z, ROWS_PER_CALL)
    generated, jacobian = both[:, :features], both[:, features:].unflatten(1, (features, -1))
    residual = (x - generated) / sigma
    slope = jacobian / sigma
    value = 0.5 * (z.square().sum(1) + residual.square().sum(1))
    gradient = z - (slope.mT @ residual[..., None])[..., 0]
    identity = torch.eye(latent_dim, dtype=z.dtype, device=z.device)
    precision = identity + slope.mT @ slope
    value = torch.nan_to_num(value, nan=torch.inf)
    return Expansion(z, value, gradient, precision, generated, jacobian)


def find_modes(
    model: RoundtripModel, x: Tensor, start: Tensor, *, sigma: float, steps: int
) -> Expansion:
    """Climb from `start`, `(rows, latent_dim)`, towards a maximum of p(x, z) in z.

    Returns the expansion at the best points found, at the cost of `steps + 1` expansions.
    """
    best = expand(model, x, start.double(), sigma=sigma)
    damping = torch.full_like(best.value, FIRST_DAMPING)
    for _ in range(steps):
        trial = expand(model, x, best.gauss_newton(damping), sigma=sigma)
        better = trial.value < best.value
        damping = torch.where(better, damping * 0.1, damping * 10)
        best = best.replaced(better, trial)
    return best


def linearised_posterior(
    model: RoundtripModel, x: Tensor, mean: Tensor, factor: Tensor, *, sigma: float
) -> tuple[Tensor, Tensor]:
    """Mean and lower Cholesky factor of p(z | x) if G were linear across N(mean, factor factorᵀ).

    G is evaluated at the 2m points mean ± sqrt(m) factor eᵢ. What a linear map leaves
    unexplained there counts as further observation noise, so a curved G widens the posterior.
    """
    dim, features = mean.shape[1], x.shape[1]
    axes = math.sqrt(dim) * torch.eye(dim, dtype=mean.dtype, device=mean.device)
    rim = torch.cat([axes, -axes])
    z = mean[:, None] + rim @ factor.mT
    generated = map_blocks(model.generate, z.flatten(0, 1), EVALUATIONS_PER_CALL)
    generated = generated.double().view(*z.shape[:2], features)
    centre = generated.mean(dim=1, keepdim=True)
    slope = (generated - centre).mT @ rim / (2 * dim)  # (rows, features, dim), of factor⁻¹ z
    unexplained = (generated - centre).mT @ (generated - centre) / (2 * dim) - slope @ slope.mT
    noise = unexplained + sigma**2 * torch.eye(features, dtype=x.dtype, device=x.device)
    weighted = torch.linalg.solve_ex(noise, slope)[0].mT
    precision = factor.mT @ factor + weighted @ slope
    pull = weighted @ (x[:, None] - centre).mT - factor.mT @ mean[..., None]
    precision_factor, failed = torch.linalg.cholesky_ex(precision)
    new_mean = mean + (factor @ torch.cholesky_solve(pull, precision_factor))[..., 0]
    # With precision = C Cᵀ, factor C⁻ᵀ is a root of the covariance; QR makes it triangular.
    root = torch.linalg.solve_triangular(precision_factor.mT, factor, upper=True, left=False)
    usable = (failed == 0) & new_mean.isfinite().all(1) & root.isfinite().flatten(1).all(1)
    new_mean = torch.where(usable[:, None], new_mean, mean)
    root = torch.where(usable[:, None, None], root, factor)
    triangular = torch.linalg.qr(root.mT)[1].mT
    signs = torch.where(triangular.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0)
    return new_mean, triangular * signs[:, None]
