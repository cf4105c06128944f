"""The importance weights of the authors' public code, which are biased; for demonstration only.

That code draws z from a multivariate Student t around H(x), whose coordinates share one chi-square
variable, but divides by a product of univariate t densities, which is not the density of these
draws. The mean weight is then not p(x) but ∫ p(x, z) q(z) / r(z) dz, with q the density of the
draws and r the product. See docs/reference-bias.md.
"""

import math

import numpy as np
import torch

from roundtrip.density.proposals import student_t_draws, student_t_log_prob
from roundtrip.density.weights import encoded, log_joints
from roundtrip.model.core import RoundtripModel

SCALES = (0.005, 0.01, 0.1, 0.5, 1.0)
"""Scales of the proposal, among which the authors' code chooses by validation likelihood."""


@torch.no_grad()
def biased_log_density(
    model: RoundtripModel,
    x: torch.Tensor,
    *,
    n_samples: int,
    scale: float,
    df: float = 1.0,
    seed: int = 0,
) -> np.ndarray:
    """Estimates of log p(x) by the published code, `(rows,)`.

    Parameters
    ----------
    model : RoundtripModel
        The fitted model.
    x : torch.Tensor
        `(rows, features)`.
    n_samples : int
        Draws per row.
    scale, df : float, default=1.0
        Scale and degrees of freedom of the proposal.
    seed : int, default=0
        Seed of the draws.

    Examples
    --------
    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2), 2, sigma=0.5)
    >>> biased_log_density(model, torch.zeros(4, 3), n_samples=100, scale=0.5).shape
    (4,)
    """
    rng = np.random.default_rng(seed)
    values = np.empty(len(x))
    x = x.double().to(model.device)
    for row, (point, start) in enumerate(zip(x, encoded(model, x), strict=True)):
        draws, _ = student_t_draws(n_samples, model.latent_dim, df, rng)
        draws = draws.to(point.device)
        z = start + scale * draws
        log_product = student_t_log_prob(draws[..., None], df).sum(-1)
        log_product -= model.latent_dim * math.log(scale)
        log_joint = log_joints(model, point[None], z[None])[0]
        mean_weight = torch.logsumexp(log_joint - log_product, dim=0) - math.log(n_samples)
        values[row] = mean_weight.item()
    return values
