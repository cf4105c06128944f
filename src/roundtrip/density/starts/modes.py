"""Modes of the posterior p(z | x): minima of v(x, z) of eq. (4), with Gaussian approximations.

Damped Gauss-Newton steps (Levenberg-Marquardt) find a maximum of p(x, z). Then G is replaced by the
linear map that fits it best over the width of the posterior. The slope of a leaky ReLU network at
one point says little about this width, so that the map is fitted to points around the mode.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.jacobian import generator_jacobian, rows_per_call
from roundtrip.model.core import RoundtripModel

MOST_ROWS_PER_CALL = 64
FIRST_DAMPING = 0.01
ENOUGH = 0.5
"""Smallest gain of a step, in nats, after which another step is made."""


@dataclass
class Expansion:
    """Quadratic expansion of v(x, z) / 2, eq. (4), around one z per row.

    It costs 1 + latent_dim evaluations of G per row.

    Attributes
    ----------
    z : Tensor
        Centres of the expansion, `(rows, latent_dim)`.
    value, gradient : Tensor
        Value and gradient of v/2, `(rows,)` and `(rows, latent_dim)`.
    precision : Tensor
        I + Jᵀ diag(sigma⁻²) J, which is Σ⁻¹ of eq. (11): the precision of the posterior if G is
        linear; `(rows, latent_dim, latent_dim)`.
    generated, jacobian : Tensor
        G(z) and its Jacobian J, `(rows, features)` and `(rows, features, latent_dim)`.
    """

    z: Tensor
    value: Tensor
    gradient: Tensor
    precision: Tensor
    generated: Tensor
    jacobian: Tensor

    @property
    def covariance_factor(self) -> Tensor:
        """Lower Cholesky factor of Σ, eq. (11); NaN if the precision is numerically singular."""
        factor, failed = torch.linalg.cholesky_ex(self.precision)
        identity = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        factor = torch.where((failed > 0)[:, None, None], identity, factor)
        root = torch.linalg.solve_triangular(factor.mT, identity, upper=True)
        return torch.where((failed > 0)[:, None, None], torch.nan, _triangular(root))

    def gauss_newton(self, damping: Tensor) -> Tensor:
        """Return z after a damped Gauss-Newton step, `(rows, latent_dim)`."""
        diagonal = damping[:, None] * self.precision.diagonal(dim1=-2, dim2=-1)
        factor = torch.linalg.cholesky_ex(self.precision + torch.diag_embed(diagonal))[0]
        return self.z - torch.cholesky_solve(self.gradient[..., None], factor)[..., 0]

    @property
    def log_evidence(self) -> Tensor:
        """Log of the Gaussian integral of eq. (10) up to a constant: log p(x) if G is linear."""
        return self.promise - self.value - 0.5 * torch.logdet(self.precision)

    @property
    def promise(self) -> Tensor:
        """Decrease of v/2 by an undamped step if G is linear, `(rows,)`."""
        factor = torch.linalg.cholesky_ex(self.precision)[0]
        half = torch.linalg.solve_triangular(factor, self.gradient[..., None], upper=False)
        return 0.5 * half.square().sum((1, 2))

    def __getitem__(self, rows: Tensor) -> "Expansion":
        """Return the expansion of some of the rows."""
        return Expansion(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def chosen(cls, expansions: list["Expansion"], which: Tensor) -> "Expansion":
        """Return expansion number `which`, `(rows,)`, of each row."""
        row = torch.arange(len(which), device=which.device)
        stacks = (
            torch.stack([getattr(each, field.name) for each in expansions], dim=1)
            for field in fields(cls)
        )
        return cls(*(stack[row, which] for stack in stacks))

    def replaced(self, rows: Tensor, other: "Expansion") -> "Expansion":
        """Return this expansion with `other` in place of `rows`."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Expansion(*(old.index_copy(0, rows, new) for old, new in pairs))


def expand(model: RoundtripModel, x: Tensor, z: Tensor) -> Expansion:
    """Expand v(x, z) / 2 of eq. (4) for every row of x around the same row of z."""
    features, latent_dim = x.shape[1], z.shape[1]

    def flat(block: Tensor) -> Tensor:
        generated, jacobian = generator_jacobian(model, block)
        return torch.cat([generated, jacobian.flatten(1)], dim=1).double()

    both = map_blocks(flat, z, rows_per_call(model, features, MOST_ROWS_PER_CALL))
    generated, jacobian = both[:, :features], both[:, features:].unflatten(1, (features, -1))
    sigma = model.sigma.expand(features)
    residual = (x - generated) / sigma
    slope = jacobian / sigma[:, None]
    value = 0.5 * (z.square().sum(1) + residual.square().sum(1))
    gradient = z - (slope.mT @ residual[..., None])[..., 0]
    identity = torch.eye(latent_dim, dtype=z.dtype, device=z.device)
    precision = identity + slope.mT @ slope
    value = torch.nan_to_num(value, nan=torch.inf)
    return Expansion(z, value, gradient, precision, generated, jacobian)


def find_modes(
    model: RoundtripModel, x: Tensor, start: Tensor, *, min_steps: int, max_steps: Tensor
) -> tuple[Expansion, Tensor]:
    """Climb towards a maximum of p(x, z) in z.

    Parameters
    ----------
    model : RoundtripModel
        Model with Gaussian noise of constant width.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    start : Tensor
        First z of each row, `(rows, latent_dim)`.
    min_steps : int
        Steps of every row.
    max_steps : Tensor
        Most steps of each row, `(rows,)`, for those that still gain.

    Returns
    -------
    best : Expansion
        Expansion at the best z found.
    taken : Tensor
        Number of expansions per row, `(rows,)`.
    """
    best = expand(model, x, start.double())
    damping = torch.full_like(best.value, FIRST_DAMPING)
    taken = torch.ones_like(damping, dtype=torch.int64)
    rows = torch.arange(len(x), device=x.device)
    for step in range(1, int(max_steps.max()) + 1):
        here = best[rows]
        trial = expand(model, x[rows], here.gauss_newton(damping[rows]))
        better = trial.value < here.value
        damping[rows] = torch.where(better, damping[rows] * 0.1, damping[rows] * 10)
        best = best.replaced(rows[better], trial[better])
        taken[rows] += 1
        if step >= min_steps:
            # A step that failed is tried again, shorter, unless its predicted gain is small.
            climbing = torch.where(better, here.value - trial.value, here.promise) > ENOUGH
            rows = rows[climbing & (step < max_steps[rows])]
        if not len(rows):
            break
    return best, taken


def linearised_posterior(
    model: RoundtripModel, x: Tensor, mean: Tensor, factor: Tensor
) -> tuple[Tensor, Tensor]:
    """Approximate p(z | x) by a linear map fitted to G over N(mean, factor factorᵀ).

    G is evaluated at the 2m points mean ± sqrt(m) factor eᵢ. The residuals of the linear map count
    as further observation noise, so that a curved G widens the posterior.

    Parameters
    ----------
    model : RoundtripModel
        Model with Gaussian noise of constant width.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    mean, factor : Tensor
        Mean and lower Cholesky factor of the covariance of a first approximation.

    Returns
    -------
    mean : Tensor
        Mean of the new approximation, or of the first one if the new one is not finite.
    factor : Tensor
        Lower Cholesky factor of its covariance.
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
    noise = unexplained + torch.diag(model.sigma.expand(features).square())
    weighted = torch.linalg.solve_ex(noise, slope)[0].mT
    precision = factor.mT @ factor + weighted @ slope
    pull = weighted @ (x[:, None] - centre).mT - factor.mT @ mean[..., None]
    precision_factor, failed = torch.linalg.cholesky_ex(precision)
    new_mean = mean + (factor @ torch.cholesky_solve(pull, precision_factor))[..., 0]
    # With precision = C Cᵀ, factor C⁻ᵀ is a root of the covariance. QR makes it triangular.
    root = torch.linalg.solve_triangular(precision_factor.mT, factor, upper=True, left=False)
    usable = (failed == 0) & new_mean.isfinite().all(1) & root.isfinite().flatten(1).all(1)
    new_mean = torch.where(usable[:, None], new_mean, mean)
    return new_mean, torch.where(usable[:, None, None], _triangular(root), factor)


def _triangular(root: Tensor) -> Tensor:
    """Return the lower triangular L with positive diagonal and L Lᵀ = root rootᵀ."""
    lower = torch.linalg.qr(root.mT)[1].mT
    signs = torch.where(lower.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0)
    return lower * signs[:, None]
