"""Quasi-Monte Carlo from the encoder's posterior: quick estimates of rows that the encoder knows.

Draws come from Gaussians of several widths around q(z | x), and from a Student t distribution as
wide as the prior, at the points of a randomised net. A net has a fraction of the variance of as
many random draws, the smaller the more points it has. This fraction is measured on samples of the
model itself. The first points of a row say how many it needs. If these are many, they serve to fit
a better Gaussian, whose net needs fewer. Rows whose weights are too uneven even then are left to
adaptive sampling, and so are all rows of a model whose weights have heavy tails, or whose
encoder misses parts of the posterior.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.diagnostics import pareto_k, reliable
from roundtrip.density.nets import MOST_POINTS, shifted_nets
from roundtrip.density.proposals import student_t_log_prob
from roundtrip.density.randomness import row_keys
from roundtrip.density.starts.bank import make_bank, unusual_rows
from roundtrip.density.starts.refinement import refined, refined_by_values
from roundtrip.density.weights import encoded_posterior, log_joints, weighted_estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

SCALES, SHARES = (1.0, 1.3, 2.0), (0.7, 0.24, 0.06)
"""Widths of the Gaussians in units of the posterior, and their shares."""

WIDE_SHARE = 0.03
"""Share of a Student t with 2 degrees of freedom, with mean and scale those of the prior. Its tails
are heavier than those of a prior, so that it bounds the weights."""

SIZES = (64, 96, 128, 192, 256, 384, 512, 768, 1024, MOST_POINTS)
"""Points of a net, which grows from size to size. A row that needs more than the last is left to
adaptive sampling. Other numbers than powers of two and one and a half times them fill the cube much
less evenly."""

SPARE = 1.1
"""Factor on the squared standard error that the first points predict."""

MOST_FIRST_POINTS = 128
"""Points from the encoder's posterior; rows that need more get a fitted one, and other points."""

MOST_NET_EVALUATIONS = 1 + MOST_FIRST_POINTS + MOST_POINTS

MOST_FITTED_DIM = 8
"""Most latent dimensions at which a posterior is fitted to the first points."""

POINTS_AFTER_HEAVY_TAIL = 192
"""Fewest points of a row whose first points look unreliable: with more that is mostly chance."""

HEAVIEST_TAIL = 0.4
"""Largest median Pareto k of the rows that a model generates at which nets are used."""

CHECKED_ROWS, FARTHEST_ABOVE, MOST_MISSED = 512, 5.0, 0.01
"""Samples of the model whose z is compared with their nets; nats by which the weight of that z may
be above the mean weight; and the share of samples that may exceed this."""

CHECKED_REFINEMENTS, WIDEST = 128, 3.0
"""Samples of the model whose z is compared with their refined posteriors, and the width of the
widest component around these."""

MEASURED_ROWS, MEASURED_NETS, MEASURED_SIZES = 64, 4, (64, 96, 128)
"""Samples of the model, nets of each, and their sizes, that measure the variance of nets."""


Ratios = tuple[float, float, float]
"""Variance of the mean weight over nets of each of `MEASURED_SIZES`, in units of that over as many
random draws."""

USELESS: Ratios = (math.inf,) * 3


@dataclass(frozen=True)
class NetVariance:
    """What nets are worth for a model.

    Attributes
    ----------
    ratios : tuple of float
        Variances of nets from the encoder's posterior; infinite if nets are of no use.
    refined : tuple of float or None
        The same for posteriors that are fitted to the first points of a net; None if these are too
        few for a fit, or if the fitted posteriors are of no use.
    """

    ratios: Ratios
    refined: Ratios | None = None

    @property
    def is_finite(self) -> bool:
        """Whether nets are of use; not if weights have heavy tails."""
        return all(map(math.isfinite, self.ratios))


def ratio_of(ratios: Ratios, points: int) -> float:
    """Return the ratio for a net of one of `SIZES`.

    That of a larger net is at most that of the largest measured one of its kind: 128 points for
    powers of two, 96 for the others.

    Examples
    --------
    >>> [ratio_of((0.3, 0.25, 0.2), points) for points in (64, 96, 128, 192, 256)]
    [0.3, 0.25, 0.2, 0.25, 0.2]
    """
    if points in MEASURED_SIZES:
        return ratios[MEASURED_SIZES.index(points)]
    is_power_of_two = points & (points - 1) == 0
    return ratios[2 if is_power_of_two else 1]


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
        return z, self.log_prob(z)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density of `(rows, n, dim)` points, `(rows, n)`."""
        dim = self.mean.shape[1]
        scales = z.new_tensor(SCALES)
        shares = (1 - WIDE_SHARE) * z.new_tensor(SHARES)
        inside = _standardised(z - self.mean[:, None], self.factor).square().sum(-1)
        log_det = self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)[:, None, None]
        around = shares.log() - dim * scales.log() - log_det - 0.5 * dim * math.log(2 * math.pi)
        parts = around - 0.5 * inside[..., None] / scales.square()
        standard = _standardised(z - self.prior_mean, self.prior_factor)
        wide = student_t_log_prob(standard, df=2.0) - self.prior_factor.diagonal().log().sum()
        parts = torch.cat([parts, math.log(WIDE_SHARE) + wide[..., None]], dim=-1)
        return torch.logsumexp(parts, dim=-1)


def _standardised(centred: Tensor, factor: Tensor) -> Tensor:
    """Return `(rows, n, dim)` vectors in units of a Cholesky factor."""
    return torch.linalg.solve_triangular(factor, centred.mT, upper=False).mT


@torch.no_grad()
def net_variance(model: RoundtripModel) -> NetVariance:
    """Measure the variance of nets on rows that the model generates.

    It takes some 110,000 evaluations of G, or 70,000 if posteriors are not fitted.

    It is infinite if a net would miss the largest weights: if they have heavy tails, or if the
    encoder does not know the z of too many rows. Unusual rows, for which nets are not used, do not
    count.
    """
    z, x = _usual_samples(model, CHECKED_ROWS)
    if not len(x) or not _missed_share(model, z, x) <= MOST_MISSED:
        return NetVariance(USELESS)
    x = x[:MEASURED_ROWS]
    proposal = EncoderProposal.of(model, x)
    ratios = _ratios(model, x, proposal)
    if model.latent_dim > MOST_FITTED_DIM:
        return NetVariance(ratios)
    keys = row_keys(x.cpu().numpy(), MEASURED_NETS)
    first_weights = net_log_weights(model, x, proposal, keys, 0, SIZES[0])
    fitted = _ratios(model, x, refitted(proposal, keys, first_weights))
    if fitted == USELESS:
        return NetVariance(ratios)
    # Rows that need more than the first points are those whose fit is poor: their ratios lie
    # between both.
    second, third = (math.sqrt(a * max(a, b)) for a, b in zip(fitted[1:], ratios[1:], strict=True))
    return NetVariance(ratios, (fitted[0], second, third))


def _ratios(model: RoundtripModel, x: Tensor, proposal: EncoderProposal) -> Ratios:
    """Measure the variance of nets; infinite if weights have heavy tails."""
    nets = torch.stack(
        [
            net_log_weights(
                model, x, proposal, row_keys(x.cpu().numpy(), seed), 0, MEASURED_SIZES[-1]
            )
            for seed in range(MEASURED_NETS)
        ],
        dim=1,
    )
    if not pareto_k(nets.flatten(1)).nanmedian() <= HEAVIEST_TAIL:
        return USELESS
    weights = torch.exp(nets - nets.amax((1, 2), keepdim=True))
    weights = weights / weights.mean((1, 2), keepdim=True)
    of_draws = weights.flatten(1).var(dim=1)
    first, second, third = (
        float((n * weights[..., :n].mean(2).var(dim=1) / of_draws).nanmean().clamp(1e-3, 1.0))
        for n in MEASURED_SIZES
    )
    # Twice the points do not make a net worse: such a measurement is chance.
    return max(first, third), second, third


@torch.no_grad()
def refinement_covers(model: RoundtripModel) -> bool:
    """Return whether refined posteriors cover p(z | x) of rows that the model generates.

    They do not if p(z | x) has modes far from each other. The z of such a row is a draw from
    p(z | x), and lies far from a Gaussian that covers another mode.
    """
    z, x = _usual_samples(model, CHECKED_REFINEMENTS)
    if not len(x):
        return False
    mean, factor, _ = refined(model, x, *encoded_posterior(model, x))
    distance = _standardised((z - mean)[:, None], factor).norm(dim=-1)
    farthest = WIDEST * (math.sqrt(model.latent_dim) + 2)
    return float((~(distance <= farthest)).double().mean()) <= MOST_MISSED


def _usual_samples(model: RoundtripModel, rows: int) -> tuple[Tensor, Tensor]:
    """Return the usual ones among `rows` rows that the model generates, after their codes."""
    rng = np.random.default_rng(named_seed(0, "net variance"))
    z = model.prior.sample(rows, rng).to(model.device)
    noise_rng = torch.Generator().manual_seed(named_seed(0, "rows for the net variance") % 2**63)
    x = model.noise.sample(model.decode(z).double(), noise_rng).double()
    x = model.as_observed(x, noise_rng)
    usual = ~unusual_rows(model, x, make_bank(model, 0))
    return z[usual], x[usual]


def _missed_share(model: RoundtripModel, z: Tensor, x: Tensor) -> float:
    """Return the share of rows whose net misses the z that they were generated from.

    That z is a draw from p(z | x). If its weight is far above the mean weight over the net, the
    net has no points around it: the posterior has a part that the encoder does not know.
    """
    proposal = EncoderProposal.of(model, x)
    keys = row_keys(x.cpu().numpy(), 0)
    log_density = weighted_estimate(net_log_weights(model, x, proposal, keys, 0, SIZES[0]))[0]
    own = log_joints(model, x, z[:, None]) - proposal.log_prob(z[:, None])
    return float((own[:, 0] - log_density > FARTHEST_ABOVE).double().mean())


def net_log_weights(
    model: RoundtripModel,
    x: Tensor,
    proposal: EncoderProposal,
    keys: np.ndarray,
    start: int,
    stop: int,
) -> Tensor:
    """Return the log weights of some points of a net per row, `(rows, stop - start)`."""
    cube = shifted_nets(keys, start, stop, 1 + model.latent_dim, x.device)
    z, log_prob = proposal.draws(cube)
    return log_joints(model, x, z) - log_prob


@torch.no_grad()
def by_nets(
    model: RoundtripModel, x: Tensor, *, variance: NetVariance, tol: float, seed: int
) -> dict[str, Tensor]:
    """Estimate log p(x) of rows that the encoder knows.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    variance : NetVariance
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
    if not variance.refined:
        return _grown_nets(model, x, proposal, keys, variance.ratios, tol)[0]
    result, first_weights = _grown_nets(
        model, x, proposal, keys, variance.ratios, tol, most=MOST_FIRST_POINTS
    )
    again = ~result["converged"]
    if again.any():
        rows = again.nonzero()[:, 0]
        better = refitted(proposal[rows], keys[rows.cpu().numpy()], first_weights[rows])
        # New points: an estimate by those that the proposal was fitted to would be biased.
        keys = row_keys(x[rows].cpu().numpy(), named_seed(seed, "refitted nets"))
        second, _ = _grown_nets(model, x[rows], better, keys, variance.refined, tol)
        second["n_evaluations"] += result["n_evaluations"][rows] - 1  # the encoder is called once
        for name, values in second.items():
            result[name][rows] = values
    return result


def refitted(proposal: EncoderProposal, keys: np.ndarray, log_weights: Tensor) -> EncoderProposal:
    """Return proposals that are fitted to the weights of the first points of nets."""
    dim, points = proposal.mean.shape[1], log_weights.shape[1]
    z, log_prob = proposal.draws(shifted_nets(keys, 0, points, 1 + dim, log_weights.device))
    mean, factor = refined_by_values(
        proposal.mean, proposal.factor, z, log_weights + log_prob, log_weights
    )
    return replace(proposal, mean=mean, factor=factor)


def _grown_nets(
    model: RoundtripModel,
    x: Tensor,
    proposal: EncoderProposal,
    keys: np.ndarray,
    ratios: Ratios,
    tol: float,
    *,
    most: int = MOST_POINTS,
) -> tuple[dict[str, Tensor], Tensor]:
    """Estimate log p(x) by a net per row, which grows up to `most` points.

    Returns the columns of an estimate, and the log weights of the first points of all rows.
    """
    rows = torch.arange(len(x), device=x.device)
    log_weights = x.new_empty(len(x), 0)
    needed = torch.full_like(rows, SIZES[0])
    result: dict[str, Tensor] = {}
    for n in SIZES:
        part = keys[rows.cpu().numpy()]
        new = net_log_weights(model, x[rows], proposal[rows], part, log_weights.shape[1], n)
        log_weights = torch.cat([log_weights, new], dim=1)
        log_density, of_draws, ess = weighted_estimate(log_weights)
        std_error = of_draws * math.sqrt(ratio_of(ratios, n))
        k = pareto_k(log_weights)
        precise, sound = std_error <= tol, reliable(log_density, ess, k, n)
        if n == SIZES[0]:
            first_weights = log_weights
            needed = torch.where(precise, n, _points_needed(n * of_draws.square(), ratios, tol))
            needed = torch.where(sound, needed, needed.clamp_min(POINTS_AFTER_HEAVY_TAIL))
        ends = needed <= n
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
        # More points until the tail looks harmless would favour rows that miss their largest
        # weights.
        stays = (needed <= most) & (~ends | (sound & ~precise)) & (n < most)
        rows, log_weights, needed = rows[stays], log_weights[stays], needed[stays]
        if not len(rows):
            break
    return result, first_weights


def _points_needed(squared: Tensor, ratios: Ratios, tol: float) -> Tensor:
    """Return the points for a standard error of `tol`; more than `MOST_POINTS` if they are too few.

    `squared` is the variance of the log density by one random draw, `(rows,)`.
    """
    needed = torch.full(squared.shape, MOST_POINTS + 1, device=squared.device)
    for n in reversed(SIZES):
        needed[SPARE * ratio_of(ratios, n) * squared / n <= tol**2] = n
    return needed
