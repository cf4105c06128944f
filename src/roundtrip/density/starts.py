"""Where adaptive importance sampling starts: a first proposal for each row."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.density.importance import encoded
from roundtrip.density.mixture import StudentMixture
from roundtrip.density.modes import (
    MAX_STEPS,
    Expansion,
    find_modes,
    linearised_posterior,
)
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import ConstantGaussian

BANK_SIZE = 4096
LINEARISATIONS = 1
BANK_STARTS = 2
BANK_CANDIDATES = 128
ENCODED_EVALUATIONS = 1
NO_EVIDENCE = -1e30
FARTHEST_START = 1e3
"""No latent vector is farther out: the prior's density there is zero in float64."""

MODE_SHARES = (0.8, 0.13, 0.07)
"""Of the modes, best first, besides what their evidence gives them."""

REPEATED_MODE_SHARE = 0.03
NEARLY_AS_LIKELY = 2.0
CLEARLY_MORE = 0.01
"""Nats of evidence by which the second mode must be ahead to become the first."""

WIDE_SHARE, PRIOR_SHARE = 0.1, 0.08

POSTERIOR_SCALES = (1.1, 1.7, 3.0)
POINT_SCALES = (0.1, 0.3, 1.0)
SCALE_SHARES = (0.65, 0.22, 0.13)
"""Widths around the encoder's posterior, or around H(x) if that is all, and their weights."""

UNUSUAL_SHARE = 0.02
"""Of the model's own samples count as unusual; their encoder is not relied on."""

USUAL_PLACE_SHARE, UNUSUAL_PLACE_SHARE = 0.05, 0.4
PLACE_WIDTHS = (0.05, 0.3)
CLIMB_STEPS, CLIMB_RATE = 60, 0.2
ROWS_PER_SEARCH = 4
SEARCHED_SIZE = 1024
"""Points of the bank that unusual rows are compared with."""


@dataclass(frozen=True)
class Bank:
    """Draws of the prior and what G says of them: places to start from, shared by all rows.

    They only choose proposals and enter no estimate, so that rows stay independent.

    Attributes
    ----------
    z : `(size, latent_dim)`.
    outputs : of G, for the observation model, `(size, n_outputs)`.
    usual : log p(x, H(x)) above which a row counts as one that the encoder knows.
    """

    z: Tensor
    outputs: Tensor
    usual: float


@torch.no_grad()
def make_bank(model: RoundtripModel, seed: int) -> Bank:
    """A bank for a model; costs `BANK_SIZE` evaluations of G, whatever the number of rows."""
    rng = np.random.default_rng(seed)
    z = model.draw_codes(BANK_SIZE, rng).to(model.device)
    outputs = map_blocks(model.decode, z, EVALUATIONS_PER_CALL).double()
    if _climbs(model):
        return Bank(z, outputs, usual=-math.inf)
    randomness = torch.Generator().manual_seed(seed % 2**63)
    samples = model.noise.sample(outputs[:SEARCHED_SIZE], randomness)
    at_code = _log_joint_at_code(model, samples.double())
    return Bank(z, outputs, usual=torch.quantile(at_code, UNUSUAL_SHARE).item())


def most_start_evaluations(model: RoundtripModel) -> int:
    """Evaluations of G that `first_proposal` spends on a row at most."""
    if not _climbs(model):
        return ENCODED_EVALUATIONS
    return _climb_evaluations((1 + BANK_STARTS) * (1 + MAX_STEPS), model.latent_dim)


def first_proposal(model: RoundtripModel, x: Tensor, bank: Bank) -> tuple[StudentMixture, Tensor]:
    """A mixture for each row of x around the likely places of its z, and its evaluations of G.

    An encoder that was trained to give the posterior of z is asked, and the bank for rows that the
    encoder does not seem to know; otherwise the maxima of p(x, z) are searched for.
    """
    rows, dim = len(x), model.latent_dim
    if _climbs(model):
        components, weights, evaluations = _climbed_components(model, x, bank)
    else:
        components, weights = _encoded_components(model, x, bank)
        evaluations = torch.full((rows,), ENCODED_EVALUATIONS, device=x.device)
    prior_mean, prior_factor = (part.to(x.device) for part in model.prior_moments())
    components.append((prior_mean.expand(rows, dim), prior_factor.expand(rows, dim, dim)))
    means, factors = (torch.stack(part, dim=1) for part in zip(*components, strict=True))
    # Rows so far away that a linear G would lead out of the numbers get the prior instead.
    failed = ~((means.abs() < FARTHEST_START).all(-1) & factors.isfinite().flatten(2).all(-1))
    means = torch.where(failed[..., None], prior_mean, means)
    factors = torch.where(failed[..., None, None], prior_factor, factors)
    weights = (1 - PRIOR_SHARE) * weights
    weights = torch.cat([weights, torch.full_like(weights[:, :1], PRIOR_SHARE)], dim=1)
    # Heavier tails than a Gaussian, but not so heavy that most draws of many dimensions are tail.
    return StudentMixture(weights, means, factors, df=5.0 + dim), evaluations


def _climbs(model: RoundtripModel) -> bool:
    """Gauss-Newton steps are for Gaussian noise of constant width."""
    return isinstance(model.noise, ConstantGaussian) and not model.has_posterior


def _climb_evaluations(expansions: Any, latent_dim: int) -> Any:
    return 1 + expansions * (1 + latent_dim) + LINEARISATIONS * 2 * latent_dim


def _encoded_components(
    model: RoundtripModel, x: Tensor, bank: Bank
) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """Components of several widths around the encoder's posterior, and their weights.

    Far from the data the encoder may point anywhere, and draws around its answer look as if all
    were well. Rows whose p(x, H(x)) is unusually low climb from there and from the bank.
    """
    if model.has_posterior:

        def flat(block: Tensor) -> Tensor:
            mean, factor = model.posterior(block)
            return torch.cat([mean, factor.flatten(1)], dim=1)

        both = map_blocks(flat, x, ROWS_PER_ENCODER_CALL).double()
        mean, factor = both.tensor_split([model.latent_dim], dim=1)
        factor = factor.unflatten(1, (model.latent_dim, -1))
        scales = POSTERIOR_SCALES
    else:
        mean = encoded(model, x)
        factor = torch.eye(model.latent_dim, dtype=mean.dtype, device=mean.device)
        factor = factor.expand(len(x), -1, -1)
        scales = POINT_SCALES
    components = [(mean, scale * factor) for scale in scales]
    shares = mean.new_tensor(SCALE_SHARES).expand(len(x), -1)
    unusual = unusual_rows(model, x, bank)
    places = torch.stack([mean, mean], dim=1)
    if unusual.any():
        starts = torch.stack([mean[unusual], _best_of_bank(model, x[unusual], bank)], dim=1)
        places[unusual] = _climbed(model, x[unusual], starts)
    identity = torch.eye(model.latent_dim, dtype=mean.dtype, device=mean.device)
    for place in places.unbind(dim=1):
        for width in PLACE_WIDTHS:
            narrow = torch.where(unusual[:, None, None], width * identity, scales[1] * factor)
            components.append((place, narrow))
    extra = len(components) - len(scales)
    share = torch.where(unusual, UNUSUAL_PLACE_SHARE, USUAL_PLACE_SHARE)[:, None].to(mean)
    weights = torch.cat([(1 - share) * shares, (share / extra).expand(-1, extra)], dim=1)
    return components, weights


def _climbed(model: RoundtripModel, x: Tensor, z: Tensor) -> Tensor:
    """Towards maxima of p(x, z) from `(rows, starts, latent_dim)`, by steps of Adam."""
    rows, starts, dim = z.shape

    def of_block(block: Tensor) -> Tensor:
        points, start = block.tensor_split([x.shape[1]], dim=1)
        with torch.enable_grad():
            place = start.clone().requires_grad_()
            best, highest = start, torch.full_like(start[:, 0], -math.inf)
            optimizer = torch.optim.Adam([place], lr=CLIMB_RATE)
            for _ in range(CLIMB_STEPS):
                value = model.log_joint(points, place)
                better = value.detach() > highest
                highest = torch.where(better, value.detach(), highest)
                best = torch.where(better[:, None], place.detach(), best)
                (place.grad,) = torch.autograd.grad(-value.sum(), place)
                place.grad.nan_to_num_()
                optimizer.step()
        return best

    joined = torch.cat([x.repeat_interleave(starts, dim=0), z.flatten(0, 1)], dim=1)
    return map_blocks(of_block, joined, ROWS_PER_ENCODER_CALL).view(rows, starts, dim)


@torch.no_grad()
def unusual_rows(model: RoundtripModel, x: Tensor, bank: Bank) -> Tensor:
    """Rows for which the encoder is not relied on, `(rows,)`; none where it is not asked."""
    if _climbs(model):
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
    return ~(_log_joint_at_code(model, x) >= bank.usual)


def _log_joint_at_code(model: RoundtripModel, x: Tensor) -> Tensor:
    """log p(x, H(x)) of each row: one evaluation of G."""

    def of_block(block: Tensor) -> Tensor:
        return model.log_joint(block, model.encode(block).double())

    return map_blocks(of_block, x, ROWS_PER_ENCODER_CALL)


def _best_of_bank(model: RoundtripModel, x: Tensor, bank: Bank) -> Tensor:
    """The z of the bank with the largest p(x, z), `(rows, latent_dim)`."""
    z, outputs = bank.z[:SEARCHED_SIZE], bank.outputs[:SEARCHED_SIZE]
    best = [
        (model.noise.log_prob(outputs, block[:, None]).sum(-1) + model.log_prior(z))
        .nan_to_num(nan=NO_EVIDENCE)
        .argmax(dim=1)
        for block in x.split(ROWS_PER_SEARCH)
    ]
    return z[torch.cat(best)]


def _climbed_components(
    model: RoundtripModel, x: Tensor, bank: Bank
) -> tuple[list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    """Components around maxima of p(x, z), their weights and the evaluations of G they took."""
    modes, expansions = _modes(model, x, bank)
    best = modes[0]
    mean, width = best.z, best.covariance_factor
    for _ in range(LINEARISATIONS):
        mean, width = linearised_posterior(model, x, mean, width)
    components = [
        (mean, width),
        *((mode.z, 1.5 * mode.covariance_factor) for mode in modes[1:]),
        (best.z, 3 * best.covariance_factor),
    ]
    share = (1 - WIDE_SHARE) * _mode_shares(modes)
    weights = torch.cat([share, torch.full_like(share[:, :1], WIDE_SHARE)], dim=1)
    return components, weights, _climb_evaluations(expansions, model.latent_dim)


def _mode_shares(modes: list[Expansion]) -> Tensor:
    """How much of the proposal each mode gets, `(rows, modes)`: half of it by its evidence."""
    evidence = torch.stack([mode.log_evidence for mode in modes], dim=1).nan_to_num(nan=NO_EVIDENCE)
    fixed = evidence.new_tensor(MODE_SHARES).expand_as(evidence)
    # A mode that is the first one again counts once.
    again = torch.stack(
        [_squared_widths(modes[0], mode.z[:, None])[:, 0] < 1 for mode in modes], dim=1
    )
    again[:, 0] = False
    fixed = torch.where(again, REPEATED_MODE_SHARE, fixed)
    by_evidence = torch.softmax(torch.where(again, -math.inf, evidence), dim=1)
    return 0.5 * by_evidence + 0.5 * fixed / fixed.sum(dim=1, keepdim=True)


def _modes(model: RoundtripModel, x: Tensor, bank: Bank) -> tuple[list[Expansion], Tensor]:
    """Maxima of p(x, z) of each row, the better of the first two in front; expansions spent."""
    candidates = _nearest(x, bank, model.sigma)
    start = _better_start(model, x, encoded(model, x), candidates)
    mode, expansions = find_modes(model, x, start, min_steps=2)
    modes = [mode]
    squared, z, generated = candidates
    value = 0.5 * (squared + z.square().sum(-1))
    row = torch.arange(len(x), device=x.device)
    for choose in (_likeliest, _farthest):
        value = torch.where(_leads_to(modes[-1], z, generated), math.inf, value)
        start = z[row, choose(value, z, modes)]
        mode, taken = find_modes(model, x, start, min_steps=1)
        expansions = expansions + taken
        modes.append(mode)
    # Often both are the same maximum: rounding must not decide which comes first.
    better = modes[1].log_evidence > modes[0].log_evidence + CLEARLY_MORE
    modes[0], modes[1] = (
        modes[0].replaced(row[better], modes[1][better]),
        modes[1].replaced(row[better], modes[0][better]),
    )
    return modes, expansions


def _nearest(x: Tensor, bank: Bank, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The bank points that G takes nearest to each row, nearest first.

    Their squared distances from x in units of sigma, `(rows, candidates)`, their z and what G
    makes of them.
    """
    count = min(BANK_CANDIDATES, len(bank.z))
    squared, nearest = (
        # Not by a matrix product, which may round a row differently in another place of a block.
        torch.cdist(x / sigma, bank.outputs / sigma, compute_mode="donot_use_mm_for_euclid_dist")
        .square()
        .topk(count, largest=False)
    )
    return squared, bank.z[nearest], bank.outputs[nearest]


def _better_start(
    model: RoundtripModel,
    x: Tensor,
    code: Tensor,
    candidates: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    """H(x), or the nearest bank point where that has the larger p(x, z): one evaluation of G."""
    generated = map_blocks(model.generate, code, ROWS_PER_ENCODER_CALL).double()
    from_code = ((x - generated) / model.sigma).square().sum(1) + code.square().sum(1)
    squared, z, _ = candidates
    from_bank = squared[:, 0] + z[:, 0].square().sum(1)
    # A code so far out that G overflows there is no start.
    return torch.where((from_code <= from_bank)[:, None], code, z[:, 0])


def _likeliest(value: Tensor, z: Tensor, modes: list[Expansion]) -> Tensor:
    """The candidate of the largest p(x, z), `(rows,)`."""
    return value.argmin(dim=1)


def _farthest(value: Tensor, z: Tensor, modes: list[Expansion]) -> Tensor:
    """Of the candidates that are nearly as likely as the likeliest, the farthest from all modes.

    The likeliest alone may lie on one ridge with a known mode, and lead back to it.
    """
    distance = torch.stack([(z - mode.z[:, None]).square().sum(-1) for mode in modes]).amin(dim=0)
    plausible = value <= value.amin(dim=1, keepdim=True) + z.shape[-1] + NEARLY_AS_LIKELY
    return torch.where(plausible, distance, -1.0).argmax(dim=1)


def _leads_to(mode: Expansion, z: Tensor, generated: Tensor) -> Tensor:
    """Whether points `z` that G takes near x belong to a mode that is known: `(rows, points)`.

    They do when they lie within its width, or when its linear map explains what G makes of them.
    (Points of another fold of G generate much the same, where the linear map sees a large step.)
    """
    predicted = (z - mode.z[:, None]) @ mode.jacobian.mT
    surprise = (generated - mode.generated[:, None] - predicted).square().sum(-1)
    return (_squared_widths(mode, z) < 4 * z.shape[-1]) | (
        surprise < 0.25 * predicted.square().sum(-1)
    )


def _squared_widths(mode: Expansion, z: Tensor) -> Tensor:
    """Squared distance of points `(rows, points, latent_dim)` from a mode in its own widths."""
    step = z - mode.z[:, None]
    return (step @ mode.precision * step).sum(-1)
