"""What nets and refined posteriors are worth for a model, measured on its own samples."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.diagnostics import pareto_k
from roundtrip.density.encoder_proposal import (
    EncoderProposal,
    net_log_weights,
    refitted,
    standardised,
)
from roundtrip.density.nets import SIZES
from roundtrip.density.randomness import row_keys
from roundtrip.density.starts.bank import make_bank, unusual_rows
from roundtrip.density.starts.refinement import refined
from roundtrip.density.weights import encoded_posterior, log_joints, weighted_estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

MOST_FITTED_DIM = 8
"""Most latent dimensions at which a posterior is fitted to the first points."""

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
    distance = standardised((z - mean)[:, None], factor).norm(dim=-1)
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
