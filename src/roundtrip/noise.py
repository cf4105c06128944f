"""Observation models p(x | z): how data scatters around the manifold that G draws."""

import math

import torch
from torch import Tensor

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-7, 1e7
"""Beyond these, residuals over sigma lose their digits in float64."""


def isotropic_log_prob(squared_residual: Tensor, sigma: Tensor | float, features: int) -> Tensor:
    """log N(x | G(z), sigma² I) from ``|x - G(z)|²``, the observation model of eq. (3).

    It takes the squared residual so that many sigmas share one evaluation of G; shapes broadcast.

    >>> import torch
    >>> isotropic_log_prob(torch.tensor([0.0, 1.0]), 1.0, features=2)
    tensor([-1.8379, -2.3379])
    """
    sigma = torch.as_tensor(sigma, dtype=squared_residual.dtype, device=squared_residual.device)
    return (
        -0.5 * squared_residual / sigma**2
        - features * torch.log(sigma)
        - 0.5 * features * math.log(2 * math.pi)
    )
