"""A bank of prior draws: places where proposals may start, shared by all rows."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.model.core import RoundtripModel

BANK_SIZE = 4096
NO_EVIDENCE = -1e30
UNUSUAL_SHARE = 0.02
"""Share of the model's own samples that count as unusual; the encoder is not relied on there."""

ROWS_PER_SEARCH = 4
SEARCHED_SIZE = 1024
"""Points of the bank that unusual rows are compared with."""


@dataclass(frozen=True)
class Bank:
    """Draws of the prior and what G says of them: places to start from, shared by all rows.

    They only choose proposals and enter no estimate, so that rows stay independent.

    Attributes
    ----------
    z : Tensor
        `(size, latent_dim)`.
    outputs : Tensor
        Of G, for the observation model, `(size, n_outputs)`.
    usual : float
        log p(x, H(x)) above which a row counts as one that the encoder knows.
    """

    z: Tensor
    outputs: Tensor
    usual: float


@torch.no_grad()
def make_bank(model: RoundtripModel, seed: int) -> Bank:
    """A bank for a model; costs `BANK_SIZE` evaluations of G, whatever the number of rows."""
    rng = np.random.default_rng(seed)
    z = model.prior.sample(BANK_SIZE, rng).to(model.device)
    outputs = map_blocks(model.decode, z, EVALUATIONS_PER_CALL).double()
    if climbs(model):
        return Bank(z, outputs, usual=-math.inf)
    sample_rng = torch.Generator().manual_seed(seed % 2**63)
    samples = model.noise.sample(outputs[:SEARCHED_SIZE], sample_rng)
    at_code = _log_joint_at_code(model, samples.double())
    return Bank(z, outputs, usual=torch.quantile(at_code, UNUSUAL_SHARE).item())


def climbs(model: RoundtripModel) -> bool:
    """Whether proposals start at maxima found by Gauss-Newton steps.

    These are for Gaussian noise of constant width; an encoder with a posterior needs none.
    """
    return model.noise.sigma is not None and not model.has_posterior


@torch.no_grad()
def unusual_rows(model: RoundtripModel, x: Tensor, bank: Bank) -> Tensor:
    """Rows for which the encoder is not relied on, `(rows,)`; none where it is not asked."""
    if climbs(model):
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
    return ~(_log_joint_at_code(model, x) >= bank.usual)


def _log_joint_at_code(model: RoundtripModel, x: Tensor) -> Tensor:
    """log p(x, H(x)) of each row: one evaluation of G."""

    def of_block(block: Tensor) -> Tensor:
        return model.log_joint(block, model.encode(block).double())

    return map_blocks(of_block, x, ROWS_PER_ENCODER_CALL)


def best_of_bank(model: RoundtripModel, x: Tensor, bank: Bank) -> Tensor:
    """The z of the bank with the largest p(x, z), `(rows, latent_dim)`."""
    z, outputs = bank.z[:SEARCHED_SIZE], bank.outputs[:SEARCHED_SIZE]
    best = [
        (model.noise.log_prob(outputs, block[:, None]).sum(-1) + model.prior.log_prob(z))
        .nan_to_num(nan=NO_EVIDENCE)
        .argmax(dim=1)
        for block in x.split(ROWS_PER_SEARCH)
    ]
    return z[torch.cat(best)]
