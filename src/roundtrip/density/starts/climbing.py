"""First proposals around maxima of p(x, z), found from H(x) and from the bank."""

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
"""Shares of the modes, best first, in the half of the proposal not divided by evidence."""

REPEATED_MODE_SHARE = 0.03
NEARLY_AS_LIKELY = 2.0
CLEARLY_MORE = 0.01
"""Lead in log evidence, in nats, at which the second mode becomes the first."""

WIDE_SHARE = 0.1


def most_climb_evaluations(latent_dim: int) -> int:
    """Return the largest number of evaluations of G per row that climbing takes."""
    return int(_climb_evaluations((1 + BANK_STARTS) * (1 + MAX_STEPS), latent_dim))


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
    evidence = torch.stack([mode.log_evidence for mode in modes], dim=1).nan_to_num(nan=NO_EVIDENCE)
    fixed = evidence.new_tensor(MODE_SHARES).expand_as(evidence)
    # A mode that equals the first one does not count again.
    again = torch.stack(
        [_squared_widths(modes[0], mode.z[:, None])[:, 0] < 1 for mode in modes], dim=1
    )
    again[:, 0] = False
    fixed = torch.where(again, REPEATED_MODE_SHARE, fixed)
    by_evidence = torch.softmax(torch.where(again, -math.inf, evidence), dim=1)
    return 0.5 * by_evidence + 0.5 * fixed / fixed.sum(dim=1, keepdim=True)


def _modes(model: RoundtripModel, x: Tensor, bank: Bank) -> tuple[list[Expansion], Tensor]:
    """Return maxima of p(x, z), the better of the first two first, and the expansions spent."""
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
    # Often both are the same maximum, and rounding must not decide which comes first.
    better = modes[1].log_evidence > modes[0].log_evidence + CLEARLY_MORE
    modes[0], modes[1] = (
        modes[0].replaced(row[better], modes[1][better]),
        modes[1].replaced(row[better], modes[0][better]),
    )
    return modes, expansions


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


def _likeliest(value: Tensor, z: Tensor, modes: list[Expansion]) -> Tensor:
    """Return the candidate with the largest p(x, z), `(rows,)`."""
    return value.argmin(dim=1)


def _farthest(value: Tensor, z: Tensor, modes: list[Expansion]) -> Tensor:
    """Return the candidate farthest from all modes among those nearly as likely as the likeliest.

    The likeliest candidate may lie on a ridge with a known mode and lead back to it.
    """
    distance = torch.stack([(z - mode.z[:, None]).square().sum(-1) for mode in modes]).amin(dim=0)
    plausible = value <= value.amin(dim=1, keepdim=True) + z.shape[-1] + NEARLY_AS_LIKELY
    return torch.where(plausible, distance, -1.0).argmax(dim=1)


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
