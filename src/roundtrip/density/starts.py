"""Where adaptive importance sampling starts: a first proposal for each row."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.importance import encoded
from roundtrip.density.mixture import StudentMixture
from roundtrip.density.modes import find_modes
from roundtrip.model import RoundtripModel

BANK_SIZE = 4096
MODE_STEPS = 4


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
    return (MODE_STEPS + 1) * (1 + latent_dim)


def first_proposal(model: RoundtripModel, x: Tensor, bank: Bank, *, sigma: float) -> StudentMixture:
    """A mixture for each row of x around the likely places of its z."""
    rows, dim = len(x), model.latent_dim
    mode, precision_factor = find_modes(model, x, encoded(model, x), sigma=sigma, steps=MODE_STEPS)
    identity = torch.eye(dim, dtype=torch.float64, device=x.device).expand(rows, dim, dim)
    shape = torch.linalg.cholesky(torch.cholesky_inverse(precision_factor))
    others = _bank_starts(x, bank, mode, precision_factor, sigma, count=2)
    means = torch.stack([mode, mode, *others, torch.zeros_like(mode)], dim=1)
    factors = torch.stack([shape, 3 * shape, 2 * shape, 2 * shape, identity], dim=1)
    weights = torch.tensor([0.6, 0.15, 0.1, 0.05, 0.1], dtype=torch.float64, device=x.device)
    # Heavier tails than a Gaussian, but not so heavy that most draws of many dimensions are tail.
    return StudentMixture(weights.expand(rows, -1), means, factors, df=5.0 + dim)


def _bank_starts(
    x: Tensor, bank: Bank, mode: Tensor, precision_factor: Tensor, sigma: float, count: int
) -> list[Tensor]:
    """The likeliest bank points of each row that are not near the mode or each other."""
    score = -0.5 * torch.cdist(x, bank.generated).square() / sigma**2
    chosen = [mode]
    for _ in range(count):
        away = (bank.z - chosen[-1][:, None]) @ precision_factor
        score = torch.where(away.square().sum(-1) < 4 * bank.z.shape[1], -math.inf, score)
        chosen.append(bank.z[score.argmax(dim=1)])
    return chosen[1:]
