"""A rough estimate of log p(x) from few draws, to find the classes that need a precise one."""

import math

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.density.outside import with_outside
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.starts import unusual_rows
from roundtrip.model.core import RoundtripModel

EVALUATIONS_PER_CALL = 4096


@torch.no_grad()
def rough_log_density(model: RoundtripModel, x: Tensor, *, draws: int, seed: int) -> np.ndarray:
    """Estimate log p(x) from a few draws of the encoder's posterior.

    The estimate is too low for rows that the encoder does not know. All rows share the same
    standard normal draws, so that the value of a row does not depend on other rows.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    draws : int
        Draws per row.
    seed : int
        Seed of the draws.

    Returns
    -------
    numpy.ndarray
        Log densities, `(rows,)`.

    Examples
    --------
    >>> import torch
    >>> G, H = torch.nn.Linear(1, 1), torch.nn.Linear(1, 2)
    >>> model = RoundtripModel(G, H, 1, sigma=0.5, has_posterior=True)
    >>> rough_log_density(model, torch.zeros(2, 1), draws=10, seed=0).shape
    (2,)
    """
    dim = model.latent_dim
    rng = np.random.default_rng(seed)
    noise = torch.from_numpy(rng.standard_normal((draws, dim))).to(x.device)
    log_noise = -0.5 * noise.square().sum(-1) - 0.5 * dim * math.log(2 * math.pi)

    def of_block(block: Tensor) -> Tensor:
        mean, factor = (part.double() for part in model.posterior(block))
        z = mean[:, None] + noise @ factor.mT
        log_q = log_noise - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
        points = block.repeat_interleave(draws, dim=0)
        log_joint = model.log_joint(points, z.flatten(0, 1)).view(len(block), draws)
        log_integral = torch.logsumexp(log_joint - log_q, dim=1) - math.log(draws)
        nothing = torch.zeros_like(log_integral)
        return with_outside(model, log_integral, nothing, model.log_outside(block))[0]

    values = map_blocks(of_block, x, max(1, EVALUATIONS_PER_CALL // draws)).cpu().numpy()
    # Without rows outside of the data: so far away that the encoder overflows, it knows nothing.
    return np.nan_to_num(values, nan=-math.inf, posinf=math.inf, neginf=-math.inf)


@torch.no_grad()
def known_rows(prepared: PreparedModel, x: Tensor, *, seed: int) -> np.ndarray:
    """Return for which rows a rough estimate is close: those that the encoder knows.

    Parameters
    ----------
    prepared : PreparedModel
        The model, whose encoder gives a posterior, and its banks.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    seed : int
        Seed of the bank.

    Returns
    -------
    numpy.ndarray
        A mask, `(rows,)`.
    """
    known = prepared.model.knows_pattern(x)
    if known.any():
        x = x[known].double()
        known[known.clone()] = ~unusual_rows(prepared.model, x, prepared.bank(seed))
    return known.cpu().numpy()
