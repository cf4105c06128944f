"""A bank of prior draws, shared by all rows, which suggests where proposals start."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.model.core import RoundtripModel, dtype_of

BANK_SIZE = 4096
NO_EVIDENCE = -1e30
"""Replaces a log evidence that is NaN."""

UNUSUAL_SHARE = 0.02
"""Share of the model's own samples that count as unusual: the encoder does not know them."""

EVALUATIONS_PER_SEARCH = 4096
SEARCHED_SIZE = 1024
"""Number of bank points that unusual rows are compared with."""


@dataclass(frozen=True)
class Bank:
    """Draws of the prior and their outputs of G.

    They choose proposals and enter no estimate, so that errors of rows stay independent.

    Attributes
    ----------
    z : Tensor
        Draws, `(size, latent_dim)`.
    outputs : Tensor
        Outputs of G, `(size, n_outputs)`.
    usual : float
        Smallest log p(x, H(x)) of a row that the encoder knows.
    """

    z: Tensor
    outputs: Tensor
    usual: float


@torch.no_grad()
def make_bank(model: RoundtripModel, seed: int) -> Bank:
    """Draw a bank; the cost is `BANK_SIZE` evaluations of G for any number of rows."""
    rng = np.random.default_rng(seed)
    z = model.prior.sample(BANK_SIZE, rng).to(model.device)
    outputs = map_blocks(model.decode, z, EVALUATIONS_PER_CALL).double()
    if climbs(model):
        return Bank(z, outputs, usual=-math.inf)
    sample_rng = torch.Generator().manual_seed(seed % 2**63)
    samples = model.noise.sample(outputs[:SEARCHED_SIZE], sample_rng)
    samples = model.as_observed(samples, sample_rng)
    at_code = _log_joint_at_code(model, samples.double()).nan_to_num(nan=NO_EVIDENCE)
    return Bank(z, outputs, usual=torch.quantile(at_code, UNUSUAL_SHARE).item())


def climbs(model: RoundtripModel) -> bool:
    """Return whether proposals start at maxima of p(x, z) found by Gauss-Newton steps.

    These steps need Gaussian noise of constant width. Encoders with a posterior do not need them.
    """
    return model.noise.sigma is not None and not model.has_posterior


@torch.no_grad()
def unusual_rows(model: RoundtripModel, x: Tensor, bank: Bank) -> Tensor:
    """Return a mask of the rows that the encoder does not know, `(rows,)`.

    No row is marked if proposals do not rely on the encoder, see `climbs`.
    """
    if climbs(model):
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
    return ~(_log_joint_at_code(model, x) >= bank.usual)


def _log_joint_at_code(model: RoundtripModel, x: Tensor) -> Tensor:
    """Return log p(x, H(x)) of each row, by one evaluation of G."""

    def of_block(block: Tensor) -> Tensor:
        return model.log_joint(block, model.encode(block).double())

    return map_blocks(of_block, x, ROWS_PER_ENCODER_CALL)


def best_of_bank(model: RoundtripModel, x: Tensor, bank: Bank) -> Tensor:
    """Return the z of the bank with the largest p(x, z) for each row, `(rows, latent_dim)`."""
    z = bank.z[:SEARCHED_SIZE]
    log_joint = log_likelihoods_at_bank(model, x, bank, SEARCHED_SIZE) + model.prior.log_prob(z)
    return z[log_joint.nan_to_num(nan=NO_EVIDENCE).argmax(dim=1)]


def log_likelihoods_at_bank(model: RoundtripModel, x: Tensor, bank: Bank, points: int) -> Tensor:
    """Return log p(x | z) of each row at the first points of the bank, `(rows, points)`."""
    outputs = bank.outputs[:points].to(dtype_of(model.generator))
    terms = model.noise.row_terms(x)
    rows_at_once = max(1, EVALUATIONS_PER_SEARCH // points)
    parts = []
    for start in range(0, len(x), rows_at_once):
        block = tuple(term[start : start + rows_at_once, None] for term in terms)
        parts.append(model.noise.log_prob_of_terms(outputs, block).sum(-1))
    return torch.cat(parts)
