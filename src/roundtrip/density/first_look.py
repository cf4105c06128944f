"""A cheap estimate of log p(x) with few draws, to see which of several models are worth more."""

import math

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.model.core import RoundtripModel

EVALUATIONS_PER_CALL = 4096


@torch.no_grad()
def first_look(model: RoundtripModel, x: Tensor, *, n_draws: int, seed: int) -> np.ndarray:
    """log p(x) of `(rows, features)` points from `n_draws` draws of H's posterior, `(rows,)`.

    Too low where the encoder does not know the rows. All rows share the same standard normal draws,
    so that a row's value does not depend on the others.

    >>> import torch
    >>> G, H = torch.nn.Linear(1, 1), torch.nn.Linear(1, 2)
    >>> model = RoundtripModel(G, H, 1, sigma=0.5, has_posterior=True)
    >>> first_look(model, torch.zeros(2, 1), n_draws=10, seed=0).shape
    (2,)
    """
    model = model.with_precise_encoder()
    dim = model.latent_dim
    rng = np.random.default_rng(seed)
    noise = torch.from_numpy(rng.standard_normal((n_draws, dim))).to(x.device)
    log_noise = -0.5 * noise.square().sum(-1) - 0.5 * dim * math.log(2 * math.pi)

    def of_block(block: Tensor) -> Tensor:
        mean, factor = (part.double() for part in model.posterior(block))
        z = mean[:, None] + noise @ factor.mT
        log_q = log_noise - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
        points = block.repeat_interleave(n_draws, dim=0)
        log_joint = model.log_joint(points, z.flatten(0, 1)).view(len(block), n_draws)
        return torch.logsumexp(log_joint - log_q, dim=1) - math.log(n_draws)

    return map_blocks(of_block, x, max(1, EVALUATIONS_PER_CALL // n_draws)).cpu().numpy()
