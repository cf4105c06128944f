"""Proposals around maxima of p(x, z), climbed from H(x) and from the bank."""

import math
from typing import Any

import torch
from torch import Tensor

from roundtrip.density.blocks import ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.density.starts.bank import NO_EVIDENCE, Bank
from roundtrip.density.starts.modes import MAX_STEPS, Expansion, find_modes, linearised_posterior
from roundtrip.density.weights import encoded
from roundtrip.model.core import RoundtripModel

LINEARISATIONS = 1
BANK_STARTS = 2
BANK_CANDIDATES = 128
MODE_SHARES = (0.8, 0.13, 0.07)
"""Of the modes, best first, besides what their evidence gives them."""

REPEATED_MODE_SHARE = 0.03
NEARLY_AS_LIKELY = 2.0
CLEARLY_MORE = 0.01
"""Nats of evidence by which the second mode must be ahead to become the first."""

WIDE_SHARE = 0.1


def most_climb_evaluations(latent_dim: int) -> int:
    """Evaluations of G that climbing takes per row at most."""
    return int(_climb_evaluations((1 + BANK_STARTS) * (1 + MAX_STEPS), latent_dim))


def _climb_evaluations(expansions: Any, latent_dim: int) -> Any:
    return 1 + expansions * (1 + latent_dim) + LINEARISATIONS * 2 * latent_dim


def climbed_components(
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
