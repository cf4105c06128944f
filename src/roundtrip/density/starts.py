"""Where adaptive importance sampling starts: a first proposal for each row."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.importance import encoded
from roundtrip.density.mixture import StudentMixture
from roundtrip.density.modes import (
    FIRST_DAMPING,
    Expansion,
    expand,
    find_modes,
    linearised_posterior,
)
from roundtrip.model import RoundtripModel

BANK_SIZE = 4096
MODE_STEPS = 2
LINEARISATIONS = 1
BANK_STARTS = 2
BANK_CANDIDATES = 128
FARTHEST_START = 1e3
"""No latent vector is farther out: the prior's density there is zero in float64."""

COMPONENT_WEIGHTS = (0.7, 0.1, 0.08, 0.04, 0.08)
"""Around the mode, wide around the mode, at two points of the bank, the prior."""


@dataclass(frozen=True)
class Bank:
    """Draws of the prior and what G makes of them: places to start from, shared by all rows.

    They only choose proposals and enter no estimate, so that rows stay independent.
    """

    z: Tensor
    generated: Tensor


def make_bank(model: RoundtripModel, seed: int) -> Bank:
    """A bank for a model; costs `BANK_SIZE` evaluations of G, whatever the number of rows."""
    rng = np.random.default_rng(seed)
    z = torch.from_numpy(rng.standard_normal((BANK_SIZE, model.latent_dim))).to(model.device)
    with torch.no_grad():
        return Bank(z, map_blocks(model.generate, z, EVALUATIONS_PER_CALL).double())


def start_evaluations(latent_dim: int) -> int:
    """Evaluations of G that `first_proposal` spends on a row."""
    expansions = MODE_STEPS + 1 + BANK_STARTS
    return expansions * (1 + latent_dim) + LINEARISATIONS * 2 * latent_dim


def first_proposal(model: RoundtripModel, x: Tensor, bank: Bank, *, sigma: float) -> StudentMixture:
    """A mixture for each row of x around the likely places of its z."""
    rows, dim = len(x), model.latent_dim
    mode = find_modes(model, x, encoded(model, x), sigma=sigma, steps=MODE_STEPS)
    mean, width = mode.z, mode.covariance_factor
    components = [(mean, 3 * width)]
    for _ in range(LINEARISATIONS):
        mean, width = linearised_posterior(model, x, mean, width, sigma=sigma)
    components.insert(0, (mean, width))
    components += _bank_components(model, x, bank, mode, sigma)
    identity = torch.eye(dim, dtype=torch.float64, device=x.device).expand(rows, dim, dim)
    components.append((torch.zeros_like(mean), identity))
    means, factors = (torch.stack(part, dim=1) for part in zip(*components, strict=True))
    # Rows so far away that a linear G would lead out of the numbers get the prior instead.
    failed = ~((means.abs() < FARTHEST_START).all(-1) & factors.isfinite().flatten(2).all(-1))
    means = torch.where(failed[..., None], 0.0, means)
    factors = torch.where(failed[..., None, None], identity[:, None], factors)
    weights = torch.tensor(COMPONENT_WEIGHTS, dtype=torch.float64, device=x.device)
    # Heavier tails than a Gaussian, but not so heavy that most draws of many dimensions are tail.
    return StudentMixture(weights.expand(rows, -1), means, factors, df=5.0 + dim)


def _bank_components(
    model: RoundtripModel, x: Tensor, bank: Bank, mode: Expansion, sigma: float
) -> list[tuple[Tensor, Tensor]]:
    """Gaussians near the likeliest bank points of each row that lead to other modes than `mode`."""
    count = min(BANK_CANDIDATES, len(bank.z))
    squared, nearest = torch.cdist(x, bank.generated).square().topk(count, largest=False)
    z, generated = bank.z[nearest], bank.generated[nearest]  # (rows, candidates, ...)
    row = torch.arange(len(x), device=x.device)
    components = []
    for _ in range(BANK_STARTS):
        squared = torch.where(_leads_to(mode, z, generated), math.inf, squared)
        start = z[row, squared.argmin(dim=1)]
        mode = expand(model, x, start, sigma=sigma)
        mean = mode.gauss_newton(torch.full_like(mode.value, FIRST_DAMPING))
        components.append((mean, 1.5 * mode.covariance_factor))
    return components


def _leads_to(mode: Expansion, z: Tensor, generated: Tensor) -> Tensor:
    """Whether points `z` that G takes near x belong to a mode that is known: `(rows, points)`.

    They do when they lie within its width, or when its linear map explains what G makes of them.
    (Points of another fold of G generate much the same, where the linear map sees a large step.)
    """
    step = z - mode.z[:, None]
    width = (step @ mode.precision * step).sum(-1)
    predicted = step @ mode.jacobian.mT
    surprise = (generated - mode.generated[:, None] - predicted).square().sum(-1)
    return (width < 4 * z.shape[-1]) | (surprise < 0.25 * predicted.square().sum(-1))
