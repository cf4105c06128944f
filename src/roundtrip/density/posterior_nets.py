"""Quasi-Monte Carlo from the encoder's posterior: quick estimates of rows that the encoder knows.

Draws come from Gaussians of several widths around q(z | x) and from the prior, at the points of
randomised nets. A net has a fraction of the variance of as many random draws. This fraction is
measured on samples of the model itself, which also says how many nets a row needs, so that no
trial is made: one net serves most rows, others get more. Rows whose weights are too uneven for a
few nets are left to `adaptive`.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.density.diagnostics import pareto_k, reliable_k
from roundtrip.density.nets import NET_SIZE, shifted_nets
from roundtrip.density.randomness import row_keys
from roundtrip.density.weights import log_joints, weighted_estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

SCALES, SHARES = (1.0, 1.3, 2.0), (0.7, 0.24, 0.06)
"""Widths of the Gaussians in units of the posterior, and their shares."""

PRIOR_SHARE, PRIOR_SCALE = 0.03, 1.1
"""Share and width of the prior, which bounds the weights."""

MOST_NETS = 12
MOST_NET_EVALUATIONS = 1 + MOST_NETS * NET_SIZE
SPARE = 1.1
MEASURED_ROWS, MEASURED_NETS = 64, 4
"""Samples of the model and nets of each that measure the variance of a net."""


@dataclass(frozen=True)
class EncoderProposal:
    """Gaussians of several widths around the posterior of each row, and the prior.

    Attributes
    ----------
    mean, factor : Tensor
        Mean and lower Cholesky factor of q(z | x), `(rows, dim)` and `(rows, dim, dim)`.
    prior_mean, prior_factor : Tensor
        Those of the prior, `(dim,)` and `(dim, dim)`.
    """

    mean: Tensor
    factor: Tensor
    prior_mean: Tensor
    prior_factor: Tensor

    @classmethod
    def of(cls, model: RoundtripModel, x: Tensor) -> "EncoderProposal":
        """Return the proposal of each row of x."""
        dim = model.latent_dim

        def flat(block: Tensor) -> Tensor:
            mean, factor = model.posterior(block)
            return torch.cat([mean, factor.flatten(1)], dim=1)

        both = map_blocks(flat, x, ROWS_PER_ENCODER_CALL).double()
        mean, factor = both.tensor_split([dim], dim=1)
        prior_mean, prior_factor = (part.to(x.device) for part in model.prior.moments())
        return cls(mean, factor.unflatten(1, (dim, dim)), prior_mean, PRIOR_SCALE * prior_factor)

    def __getitem__(self, rows: Tensor) -> "EncoderProposal":
        """Return the proposals of some of the rows."""
        return EncoderProposal(
            self.mean[rows], self.factor[rows], self.prior_mean, self.prior_factor
        )

    def draws(self, cube: Tensor) -> tuple[Tensor, Tensor]:
        """Map points of the unit cube to draws.

        Parameters
        ----------
        cube : Tensor
            Points, `(rows, n, 1 + dim)`. The first coordinate chooses the component.

        Returns
        -------
        z : Tensor
            Draws, `(rows, n, dim)`.
        log_prob : Tensor
            Their log densities, `(rows, n)`.
        """
        dim = self.mean.shape[1]
        scales = cube.new_tensor(SCALES)
        shares = (1 - PRIOR_SHARE) * cube.new_tensor(SHARES)
        component = torch.searchsorted(shares.cumsum(0), cube[..., 0].contiguous())
        from_prior = (component == len(scales))[..., None]
        normal = torch.special.ndtri(cube[..., 1:])
        offset = normal * scales[component.clamp_max(len(scales) - 1)][..., None]
        z = torch.where(
            from_prior,
            # A product per row, which does not depend on the number of rows.
            self.prior_mean + normal @ self.prior_factor.mT.expand(len(normal), -1, -1),
            self.mean[:, None] + offset @ self.factor.mT,
        )
        inside = _squared_distances(z - self.mean[:, None], self.factor)
        outside = _squared_distances(z - self.prior_mean, self.prior_factor)
        log_det = self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)[:, None, None]
        around = shares.log() - dim * scales.log() - log_det
        parts = around - 0.5 * inside[..., None] / scales.square()
        prior = math.log(PRIOR_SHARE) - self.prior_factor.diagonal().log().sum() - 0.5 * outside
        log_prob = torch.logsumexp(torch.cat([parts, prior[..., None]], dim=-1), dim=-1)
        return z, log_prob - 0.5 * dim * math.log(2 * math.pi)


def _squared_distances(centred: Tensor, factor: Tensor) -> Tensor:
    solved = torch.linalg.solve_triangular(factor, centred.mT, upper=False)
    return solved.square().sum(-2)


@torch.no_grad()
def net_variance(model: RoundtripModel) -> float:
    """Return the variance of the mean weight of a net over that of `NET_SIZE` random draws.

    It is measured on rows that the model generates: some 16,000 evaluations of G.
    """
    rng = np.random.default_rng(named_seed(0, "net variance"))
    z = model.prior.sample(MEASURED_ROWS, rng).to(model.device)
    generator = torch.Generator().manual_seed(named_seed(0, "rows for the net variance") % 2**63)
    x = model.noise.sample(model.decode(z).double(), generator).double()
    proposal = EncoderProposal.of(model, x)
    keys = row_keys(x.cpu().numpy(), 0)
    nets = torch.stack(
        [_log_weights(model, x, proposal, keys, number) for number in range(MEASURED_NETS)], dim=1
    )
    weights = torch.exp(nets - nets.amax((1, 2), keepdim=True))
    weights = weights / weights.mean((1, 2), keepdim=True)
    between = weights.mean(2).var(dim=1) * NET_SIZE
    return float((between / weights.flatten(1).var(dim=1)).nanmean().clamp(1e-3, 1.0))


def _log_weights(
    model: RoundtripModel, x: Tensor, proposal: EncoderProposal, keys: np.ndarray, number: int
) -> Tensor:
    """Return the log weights of one net per row, `(rows, NET_SIZE)`."""
    cube = shifted_nets(keys, number, 1 + model.latent_dim, x.device)
    z, log_prob = proposal.draws(cube)
    return log_joints(model, x, z) - log_prob


@torch.no_grad()
def by_nets(
    model: RoundtripModel, x: Tensor, *, variance: float, tol: float, seed: int
) -> dict[str, Tensor]:
    """Estimate log p(x) of rows that the encoder knows.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    variance : float
        The `net_variance` of the model.
    tol : float
        Largest standard error, in nats.
    seed : int
        Seed of the draws.

    Returns
    -------
    dict of Tensor
        Columns of a `DensityEstimate`. Rows that did not converge need another method.
    """
    proposal = EncoderProposal.of(model, x)
    keys = row_keys(x.cpu().numpy(), seed)
    rows = torch.arange(len(x), device=x.device)
    log_weights = x.new_empty(len(x), 0)
    needed = torch.ones_like(rows)
    result: dict[str, Tensor] = {}
    for number in range(MOST_NETS):
        new = _log_weights(model, x[rows], proposal[rows], keys[rows.cpu().numpy()], number)
        log_weights = torch.cat([log_weights, new], dim=1)
        n = log_weights.shape[1]
        log_density, std_error, ess = weighted_estimate(log_weights)
        std_error = std_error * math.sqrt(variance)
        k = pareto_k(log_weights)
        values = {
            "log_density": log_density,
            "std_error": std_error,
            "ess": ess,
            "pareto_k": k,
            "converged": (std_error <= tol) & (k <= reliable_k(n)) & (number + 1 >= needed),
            "n_evaluations": torch.full_like(rows, n + 1),
        }
        for name, value in values.items():
            result.setdefault(name, value.new_zeros(len(x)))[rows] = value
        if not number:
            needed = torch.nan_to_num(SPARE * (std_error / tol).square(), nan=math.inf)
            needed = torch.where(std_error <= tol, 1, needed.clamp_max(1e6).ceil()).long()
        stays = ~values["converged"] & (needed <= MOST_NETS)
        rows, log_weights, needed = rows[stays], log_weights[stays], needed[stays]
        if not len(rows):
            break
    return result
