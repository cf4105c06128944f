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

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.diagnostics import pareto_k, reliable
from roundtrip.density.encoder_proposal import EncoderProposal, net_log_weights, refitted
from roundtrip.density.net_variance import NetVariance, Ratios, ratio_of
from roundtrip.density.nets import MOST_POINTS, SIZES
from roundtrip.density.outside import with_outside
from roundtrip.density.randomness import row_keys
from roundtrip.density.weights import weighted_estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

SPARE = 1.1
"""Factor on the squared standard error that the first points predict."""

MOST_FIRST_POINTS = 128
"""Points from the encoder's posterior; rows that need more get a fitted one, and other points."""

MOST_NET_EVALUATIONS = 1 + MOST_FIRST_POINTS + MOST_POINTS

POINTS_AFTER_HEAVY_TAIL = 192
"""Fewest points of a row whose first points look unreliable: with more that is mostly chance."""


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
    proposal, log_outside = EncoderProposal.of(model, x), model.log_outside(x)
    keys = row_keys(x.cpu().numpy(), seed)
    if not variance.refined:
        return _grown_nets(model, x, log_outside, proposal, keys, variance.ratios, tol)[0]
    result, first_weights = _grown_nets(
        model, x, log_outside, proposal, keys, variance.ratios, tol, most=MOST_FIRST_POINTS
    )
    again = ~result["converged"]
    if again.any():
        rows = again.nonzero()[:, 0]
        better = refitted(proposal[rows], keys[rows.cpu().numpy()], first_weights[rows])
        # New points: an estimate by those that the proposal was fitted to would be biased.
        keys = row_keys(x[rows].cpu().numpy(), named_seed(seed, "refitted nets"))
        second, _ = _grown_nets(
            model, x[rows], log_outside[rows], better, keys, variance.refined, tol
        )
        second["n_evaluations"] += result["n_evaluations"][rows] - 1  # the encoder is called once
        for name, values in second.items():
            result[name][rows] = values
    return result


def _grown_nets(
    model: RoundtripModel,
    x: Tensor,
    log_outside: Tensor,
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
        log_integral, of_draws, ess = weighted_estimate(log_weights)
        log_density, of_draws, negligible = with_outside(
            model, log_integral, of_draws, log_outside[rows]
        )
        std_error = of_draws * math.sqrt(ratio_of(ratios, n))
        k = pareto_k(log_weights)
        precise, sound = std_error <= tol, reliable(log_density, ess, k, n) | negligible
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
