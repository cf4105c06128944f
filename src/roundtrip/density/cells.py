"""Quick surprises of single cells given the other cells of their row."""

import math

import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.density.outside import with_outside_code
from roundtrip.density.weights import encoded_posterior
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

DRAWS, WIDENING = 64, 1.2
"""Draws per row, and their spread in units of the encoder's posterior."""

EVALUATIONS_PER_CALL = 2048


@torch.no_grad()
def quick_cell_surprises(model: RoundtripModel, x: Tensor, *, seed: int) -> tuple[Tensor, Tensor]:
    """Estimate log p(x) and -log p(x_j | other cells) from one set of draws per row.

    Given z the features are independent. So the density without a cell is the mean of the weights
    of the draws without its factor. The values are rough, as the draws are few and chosen for the
    whole row; they serve to compare rows. All rows share their standard normal draws, so that the
    values of a row do not depend on other rows.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    x : Tensor
        Rows in scaled units, `(rows, features)`; NaN for missing cells.
    seed : int
        Seed of the draws.

    Returns
    -------
    log_density : Tensor
        `(rows,)` float64.
    surprises : Tensor
        `(rows, features)` float64; NaN for missing cells.

    Examples
    --------
    >>> import torch
    >>> G, H = torch.nn.Linear(1, 2), torch.nn.Linear(2, 2)
    >>> model = RoundtripModel(G, H, 1, sigma=0.5, has_posterior=True)
    >>> quick_cell_surprises(model, torch.zeros(3, 2), seed=0)[1].shape
    torch.Size([3, 2])
    """
    dim = model.latent_dim
    engine = torch.quasirandom.SobolEngine(dim, scramble=True, seed=named_seed(seed, "cells"))
    levels = engine.draw(DRAWS, dtype=torch.float64).clamp(1e-6, 1 - 1e-6)
    noise = WIDENING * torch.special.ndtri(levels).to(x.device)
    log_noise = -0.5 * (noise / WIDENING).square().sum(-1)
    log_noise -= dim * (0.5 * math.log(2 * math.pi) + math.log(WIDENING))

    def of_block(block: Tensor) -> Tensor:
        mean, factor = encoded_posterior(model, block)
        # A product per row, which does not depend on other rows.
        z = (mean[:, None] + noise.expand(len(mean), -1, -1) @ factor.mT).flatten(0, 1)
        log_q = log_noise - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
        terms = tuple(term.repeat_interleave(DRAWS, dim=0) for term in model.noise.row_terms(block))
        factors = model.noise.log_prob_of_terms(model.decode(z), terms)
        factors = factors.view(len(block), DRAWS, -1)
        log_prior = model.prior.log_prob(z).view(len(block), DRAWS)
        log_weights = factors.sum(-1) + log_prior - log_q
        z = z.view(len(block), DRAWS, -1)
        _, log_shares = with_outside_code(model, block, z, log_weights)
        if log_shares.shape[1] > DRAWS:
            factors = torch.cat([factors, model.outside_factors(block)[:, None]], dim=1)
        whole = torch.logsumexp(log_shares, dim=1, keepdim=True)
        without = torch.logsumexp(log_shares[..., None] - factors, dim=1)
        return torch.cat([whole, without - whole], dim=1)

    both = map_blocks(of_block, x.double(), EVALUATIONS_PER_CALL // DRAWS)
    return both[:, 0], both[:, 1:].masked_fill(x.isnan(), torch.nan)
