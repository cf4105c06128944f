"""Quasi-Monte Carlo from the encoder's posterior: quick estimates of rows that the encoder knows.

Draws come from Gaussians of several widths around q(z | x), and from a Student t distribution as
wide as the prior, at the points of randomised nets. A net has a fraction of the variance of as many
random draws. This fraction is measured on samples of the model itself. The first net of a row says
how many it needs. Rows whose weights are too uneven for a few nets are left to adaptive sampling,
and so are all rows of a model whose weights have heavy tails.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.diagnostics import pareto_k, reliable
from roundtrip.density.nets import NET_SIZE, shifted_nets
from roundtrip.density.proposals import student_t_log_prob
from roundtrip.density.randomness import row_keys
from roundtrip.density.weights import encoded_posterior, log_joints, weighted_estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

SCALES, SHARES = (1.0, 1.3, 2.0), (0.7, 0.24, 0.06)
"""Widths of the Gaussians in units of the posterior, and their shares."""

WIDE_SHARE = 0.03
"""Share of a Student t with 2 degrees of freedom, with mean and scale those of the prior. Its tails
are heavier than those of a prior, so that it bounds the weights."""

MOST_NETS = 12
"""Nets of a row; a row that needs more is left to adaptive sampling."""

MOST_NET_EVALUATIONS = 1 + MOST_NETS * NET_SIZE
SPARE = 1.1
"""Factor on the number of nets that the first one estimates."""

NETS_AFTER_HEAVY_TAIL = 3
"""Fewest nets of a row whose first net looks unreliable: with more draws that is mostly chance."""

HEAVIEST_TAIL = 0.4
"""Largest median Pareto k of the rows that a model generates at which nets are used."""

MEASURED_ROWS, MEASURED_NETS = 64, 4
"""Samples of the model and nets of each that measure the variance of a net."""


@dataclass(frozen=True)
class EncoderProposal:
    """Gaussians of several widths around the posterior of each row, and a Student t.

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
        prior_mean, prior_factor = (part.to(x.device) for part in model.prior.moments())
        return cls(*encoded_posterior(model, x), prior_mean, prior_factor)

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
        shares = (1 - WIDE_SHARE) * cube.new_tensor(SHARES)
        choice, normal = cube[..., 0].contiguous(), torch.special.ndtri(cube[..., 1:])
        component = torch.searchsorted(shares.cumsum(0), choice)
        offset = normal * scales[component.clamp_max(len(scales) - 1)][..., None]
        # Half a chi-square with 2 degrees of freedom is exponential.
        exponential = -torch.log(((1 - choice) / WIDE_SHARE).clamp_max(1 - 2**-30))[..., None]
        z = torch.where(
            (component == len(scales))[..., None],
            # A product per row, which does not depend on the number of rows.
            self.prior_mean
            + (normal / exponential.sqrt()) @ self.prior_factor.mT.expand(len(normal), -1, -1),
            self.mean[:, None] + offset @ self.factor.mT,
        )
        inside = _standardised(z - self.mean[:, None], self.factor).square().sum(-1)
        log_det = self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)[:, None, None]
        around = shares.log() - dim * scales.log() - log_det - 0.5 * dim * math.log(2 * math.pi)
        parts = around - 0.5 * inside[..., None] / scales.square()
        standard = _standardised(z - self.prior_mean, self.prior_factor)
        wide = student_t_log_prob(standard, df=2.0) - self.prior_factor.diagonal().log().sum()
        parts = torch.cat([parts, math.log(WIDE_SHARE) + wide[..., None]], dim=-1)
        return z, torch.logsumexp(parts, dim=-1)


def _standardised(centred: Tensor, factor: Tensor) -> Tensor:
    """Return `(rows, n, dim)` vectors in units of a Cholesky factor."""
    return torch.linalg.solve_triangular(factor, centred.mT, upper=False).mT


@torch.no_grad()
def net_variance(model: RoundtripModel) -> float:
    """Return the variance of the mean weight of a net over that of `NET_SIZE` random draws.

    It is measured on rows that the model generates: some 16,000 evaluations of G. The result is
    infinite if their weights have such heavy tails that a few nets would miss the largest.
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
    if not pareto_k(nets.flatten(1)).nanmedian() <= HEAVIEST_TAIL:
        return math.inf
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
        precise, sound = std_error <= tol, reliable(log_density, ess, k, n)
        if not number:
            needed = torch.nan_to_num(SPARE * (std_error / tol).square(), nan=math.inf)
            needed = torch.where(precise, 1, needed.clamp_max(1e6).ceil()).long()
            needed = torch.where(sound, needed, needed.clamp_min(NETS_AFTER_HEAVY_TAIL))
        ends = needed <= number + 1
        values = {
            "log_density": log_density,
            "std_error": std_error,
            "ess": ess,
            "pareto_k": k,
            "converged": ends & precise & sound,
            "n_evaluations": torch.full_like(rows, n + 1),
        }
        for name, value in values.items():
            result.setdefault(name, value.new_zeros(len(x)))[rows] = value
        # More nets until the tail looks harmless would favour rows that miss their largest weights.
        stays = (needed <= MOST_NETS) & (~ends | (sound & ~precise))
        rows, log_weights, needed = rows[stays], log_weights[stays], needed[stays]
        if not len(rows):
            break
    return result
