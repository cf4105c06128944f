"""Missing cells given the observed cells of their row: means, medians and likeliest levels.

Given z the features are independent, so that means and probabilities are averages over z.
"""

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.part_posterior import ROWS_AT_ONCE, PartPosterior
from roundtrip.density.prepared import PreparedModel
from roundtrip.model.noise import MixedNoise
from roundtrip.parameters import named_seed

DRAWS = 512


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
        posterior = PartPosterior.settled(prepared, block, limits={}, seed=seed)
        codes, model = posterior.draws(DRAWS, seed=seed, stream="imputation"), posterior.model
        weights = codes.weights
        outputs = map_blocks(model.outputs_of, codes.z.flatten(0, 1), EVALUATIONS_PER_CALL).double()
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


def _weighted_median(values: Tensor, weights: Tensor) -> Tensor:
    """Return the medians over axis 1 of `(rows, draws, features)` values."""
    ordered, order = values.sort(dim=1)
    share = weights[..., None].expand_as(values).gather(1, order).cumsum(1)
    place = (share < 0.5).sum(1, keepdim=True).clamp_max(values.shape[1] - 1)
    return ordered.gather(1, place)[:, 0]
