"""Missing cells given the observed cells of their row: draws, means, medians and modes.

Given z the features are independent. So a draw of missing cells is a draw of z given the observed
cells, and then one of x given z; means and probabilities are averages over z.
"""

import torch
from torch import Tensor

from roundtrip.density.adaptive import settled_proposal
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.randomness import row_generators
from roundtrip.density.weights import log_joints
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import MixedNoise
from roundtrip.parameters import named_seed

DRAWS = 512
ROWS_AT_ONCE = 64
TOL = 0.1
"""Tolerance at which the proposal of a row is found."""


def posterior_draws(
    prepared: PreparedModel, x: Tensor, *, seed: int
) -> tuple[RoundtripModel, Tensor, Tensor]:
    """Return the model of the rows, draws of z given their observed cells, and their weights.

    Parameters
    ----------
    prepared : PreparedModel
        Model without a context.
    x : Tensor
        Rows in scaled units with missing cells, `(rows, features)`.
    seed : int
        Seed of the draws.

    Returns
    -------
    model : RoundtripModel
        The model of observed cells.
    z : Tensor
        `(rows, DRAWS, latent_dim)`.
    weights : Tensor
        `(rows, DRAWS)`, which sum to 1.
    """
    if prepared.model.inputs is None:
        prepared = prepared.observed
    proposal = settled_proposal(prepared, x, tol=TOL, seed=seed)
    z = proposal.sample(DRAWS, row_generators(x.cpu().numpy(), named_seed(seed, "imputation")))
    log_weights = log_joints(prepared.model, x, z) - proposal.log_prob(z)
    return prepared.model, z, torch.softmax(log_weights, dim=1)


@torch.no_grad()
def likely_cells(prepared: PreparedModel, x: Tensor, *, how: str, seed: int) -> Tensor:
    """Return rows whose missing cells are means or medians of numbers, and likeliest levels.

    Ordered categories get their median level in both cases.

    Parameters
    ----------
    prepared : PreparedModel
        Model without a context.
    x : Tensor
        Rows in scaled units with missing cells, `(rows, features)`.
    how : {"mean", "median"}
        What numbers become.
    seed : int
        Seed of the draws.

    Returns
    -------
    Tensor
        Complete rows, `(rows, features)`.
    """
    parts = []
    for number, block in enumerate(x.split(ROWS_AT_ONCE)):
        model, z, weights = posterior_draws(prepared, block, seed=seed)
        outputs = map_blocks(model.decode, z.flatten(0, 1), EVALUATIONS_PER_CALL).double()
        if how == "mean":
            each = model.noise.mean(outputs)
            filled = (weights[..., None] * each.view(*weights.shape, -1)).sum(1)
        else:
            rng = torch.Generator().manual_seed(named_seed(seed, f"cells {number}") % 2**63)
            each = model.noise.sample(outputs, rng).view(*weights.shape, -1)
            filled = _weighted_median(each, weights)
        if isinstance(model.noise, MixedNoise):
            ordered = model.noise.columns.ordered
            for place, log_p in model.noise.log_probabilities(outputs).items():
                p = (weights[..., None] * log_p.exp().view(*weights.shape, -1)).sum(1)
                median = (p.cumsum(1) < 0.5 * p.sum(1, keepdim=True)).sum(1)
                filled[:, place] = (median if place in ordered else p.argmax(1)).to(filled)
        parts.append(torch.where(block.isnan(), filled, block))
    return torch.cat(parts)


@torch.no_grad()
def drawn_cells(prepared: PreparedModel, x: Tensor, *, count: int, seed: int) -> list[Tensor]:
    """Return `count` copies of rows whose missing cells are draws given the observed ones."""
    copies: list[list[Tensor]] = [[] for _ in range(count)]
    rng = torch.Generator().manual_seed(named_seed(seed, "draws of cells") % 2**63)
    for block in x.split(ROWS_AT_ONCE):
        model, z, weights = posterior_draws(prepared, block, seed=seed)
        chosen = torch.multinomial(weights.cpu(), count, replacement=True, generator=rng)
        for number, which in enumerate(chosen.to(z.device).unbind(1)):
            picked = z[torch.arange(len(z), device=z.device), which]
            drawn = model.noise.sample(model.decode(picked).double(), rng)
            copies[number].append(torch.where(block.isnan(), drawn, block))
    return [torch.cat(parts) for parts in copies]


def _weighted_median(values: Tensor, weights: Tensor) -> Tensor:
    """Return the medians over axis 1 of `(rows, draws, features)` values."""
    ordered, order = values.sort(dim=1)
    share = weights[..., None].expand_as(values).gather(1, order).cumsum(1)
    place = (share < 0.5).sum(1, keepdim=True).clamp_max(values.shape[1] - 1)
    return ordered.gather(1, place)[:, 0]
