"""First proposals around maxima of p(x, z), found from H(x) and from the bank."""

import math
from typing import Any

import torch
from torch import Tensor

from roundtrip.density.blocks import ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.density.starts.bank import NO_EVIDENCE, Bank
from roundtrip.density.starts.modes import Expansion, find_modes, linearised_posterior
from roundtrip.density.weights import encoded
from roundtrip.model.core import RoundtripModel

LINEARISATIONS = 1
MAX_STEPS, BANK_STEPS, MIN_BANK_STEPS = 12, 3, 1
"""Most steps of a climb, of those from the bank on average, and fewest of these."""

MOST_BANK_STARTS, FEWEST_BANK_STARTS = 7, 2
BANK_START_DIRECTIONS = 40
"""Starts from the bank times latent dimensions: in many dimensions a climb costs more."""

BANK_CANDIDATES = 128
LIKELY_CANDIDATES = 40
MOST_MODES = 4
"""Distinct modes that get a component. Each costs time at every draw."""

FIRST_MODE_SHARE = 0.8
"""Share of the best mode in the half of the proposal that is not divided by evidence."""

REPEATED_MODE_SHARE = 0.03
EVIDENCE_STEP = 0.01
"""Log evidences of modes are rounded to multiples of this, in nats, before they are compared."""

WIDE_SHARE = 0.1


def most_climb_evaluations(latent_dim: int) -> int:
    """Return the largest number of evaluations of G per row that climbing takes."""
    return int(_climb_evaluations(_most_expansions(latent_dim), latent_dim))


def _most_expansions(latent_dim: int) -> int:
    return 1 + MAX_STEPS + _bank_starts(latent_dim) * (1 + BANK_STEPS)


def _bank_starts(latent_dim: int) -> int:
    return min(MOST_BANK_STARTS, max(FEWEST_BANK_STARTS, BANK_START_DIRECTIONS // latent_dim))


def _climb_evaluations(expansions: Any, latent_dim: int) -> Any:
    return 1 + expansions * (1 + latent_dim) + LINEARISATIONS * 2 * latent_dim


def climbed_components(
    model: RoundtripModel, x: Tensor, bank: Bank
) -> tuple[list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    """Return components around maxima of p(x, z), their weights and the evaluations of G.

    Parameters
    ----------
    model : RoundtripModel
        Model with Gaussian noise of constant width.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    bank : Bank
        Bank of the model.

    Returns
    -------
    components : list of tuple of Tensor
        Means, `(rows, latent_dim)`, and Cholesky factors, `(rows, latent_dim, latent_dim)`.
    weights : Tensor
        Weights of the components, `(rows, components)`.
    evaluations : Tensor
        Evaluations of G per row, `(rows,)`.
    """
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
    """Return the share of each mode in the proposal, `(rows, modes)`, half of it by evidence."""
    evidence = _evidence(modes)
    fixed = torch.full_like(evidence, (1 - FIRST_MODE_SHARE) / (len(modes) - 1))
    fixed[:, 0] = FIRST_MODE_SHARE
    # A mode that equals the first one does not count again.
    again = torch.stack([_repeats(modes[0], mode) for mode in modes], dim=1)
    again[:, 0] = False
    fixed = torch.where(again, REPEATED_MODE_SHARE, fixed)
    by_evidence = torch.softmax(torch.where(again, -math.inf, evidence), dim=1)
    return 0.5 * by_evidence + 0.5 * fixed / fixed.sum(dim=1, keepdim=True)


def _evidence(modes: list[Expansion]) -> Tensor:
    return torch.stack([mode.log_evidence for mode in modes], dim=1).nan_to_num(nan=NO_EVIDENCE)


def _modes(model: RoundtripModel, x: Tensor, bank: Bank) -> tuple[list[Expansion], Tensor]:
    """Return the best maxima of p(x, z) that climbs found, best first, and the expansions spent.

    The basin of a maximum may hold only a tenth of the likely bank points, so that several climbs
    are made: from the likeliest point, then from those farthest from earlier starts and maxima.
    """
    candidates = _nearest(x, bank, model.sigma)
    start = _better_start(model, x, encoded(model, x), candidates)
    limit = torch.full((len(x),), MAX_STEPS, device=x.device)
    mode, expansions = find_modes(model, x, start, min_steps=2, max_steps=limit)
    modes = [mode]
    squared, z, generated = candidates
    value = 0.5 * (squared + z.square().sum(-1))
    distance = torch.full_like(value, math.inf)
    row = torch.arange(len(x), device=x.device)
    for number in range(_bank_starts(model.latent_dim)):
        value = torch.where(_leads_to(mode, z, generated), math.inf, value)
        for known in (start, mode.z):
            distance = torch.minimum(distance, (z - known[:, None]).square().sum(-1))
        start = z[row, _next_start(value, distance) if number else value.argmin(dim=1)]
        later = (_bank_starts(model.latent_dim) - 1 - number) * (1 + MIN_BANK_STEPS)
        limit = (_most_expansions(model.latent_dim) - expansions - later - 1).clamp_max(MAX_STEPS)
        mode, taken = find_modes(model, x, start, min_steps=MIN_BANK_STEPS, max_steps=limit)
        expansions = expansions + taken
        modes.append(mode)
    return _best(modes), expansions


def _next_start(value: Tensor, distance: Tensor) -> Tensor:
    """Return which of the likely candidates is farthest from all earlier starts and maxima.

    Both arguments are `(rows, candidates)`; the value is infinite for points of known modes, which
    are chosen only if there are no others.
    """
    likely = value.topk(min(LIKELY_CANDIDATES, value.shape[1]), largest=False)
    open_distance = torch.where(
        likely.values.isfinite(), distance.gather(1, likely.indices), -math.inf
    )
    return likely.indices.gather(1, open_distance.argmax(dim=1, keepdim=True))[:, 0]


def _best(modes: list[Expansion]) -> list[Expansion]:
    """Return the best modes of each row, best first, and those that repeat another one last."""
    repeated = torch.zeros_like(evidence := _evidence(modes), dtype=torch.bool)
    for k, mode in enumerate(modes):
        for earlier in range(k):
            repeated[:, k] |= ~repeated[:, earlier] & _repeats(modes[earlier], mode)
    # Rounding must not decide between two modes of the same evidence.
    evidence = torch.where(repeated, NO_EVIDENCE, (evidence / EVIDENCE_STEP).round())
    order = evidence.argsort(dim=1, descending=True, stable=True)
    return [Expansion.chosen(modes, order[:, k]) for k in range(min(MOST_MODES, len(modes)))]


def _nearest(x: Tensor, bank: Bank, sigma: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the bank points whose G(z) is nearest to each row, nearest first.

    The result is their squared distances from x in units of sigma, `(rows, candidates)`, their z
    and their G(z).
    """
    count = min(BANK_CANDIDATES, len(bank.z))
    squared, nearest = (
        # No matrix product, which may round a row differently at another position in a block.
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
    """Return H(x), or the nearest bank point if its p(x, z) is larger; one evaluation of G."""
    generated = map_blocks(model.generate, code, ROWS_PER_ENCODER_CALL).double()
    from_code = ((x - generated) / model.sigma).square().sum(1) + code.square().sum(1)
    squared, z, _ = candidates
    from_bank = squared[:, 0] + z[:, 0].square().sum(1)
    # The comparison is False if G overflows at a distant code.
    return torch.where((from_code <= from_bank)[:, None], code, z[:, 0])


def _leads_to(mode: Expansion, z: Tensor, generated: Tensor) -> Tensor:
    """Return whether points `z` belong to a known mode, `(rows, points)`.

    A point belongs to it if it lies within the width of the mode, or if G linearised at the mode
    predicts G at the point. For points of another fold of G the linear map predicts a large step,
    while G hardly changes.
    """
    predicted = (z - mode.z[:, None]) @ mode.jacobian.mT
    surprise = (generated - mode.generated[:, None] - predicted).square().sum(-1)
    return (_squared_widths(mode, z) < 4 * z.shape[-1]) | (
        surprise < 0.25 * predicted.square().sum(-1)
    )


def _squared_widths(mode: Expansion, z: Tensor) -> Tensor:
    """Return squared distances of `(rows, points, latent_dim)` from a mode in its widths."""
    step = z - mode.z[:, None]
    return (step @ mode.precision * step).sum(-1)


def _repeats(mode: Expansion, other: Expansion) -> Tensor:
    """Return whether another mode lies within two widths of a mode, `(rows,)`."""
    return _squared_widths(mode, other.z[:, None])[:, 0] < 4
