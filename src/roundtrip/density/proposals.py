"""Distributions that latent draws come from, each with the density of those very draws."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.parameters import Component, check_integer, check_number

SMALLEST_DF, LARGEST_DF = 0.1, 1e6
"""Between these the draws and the constant of the density keep their digits in float64."""


@dataclass(frozen=True, repr=False)
class Proposal(Component):
    """The paper's proposal: a Student t centred at H(x).

    The adversarial objective validates with it, and ``density(X, method="importance")`` uses it.

    Parameters
    ----------
    scale : float, default=0.2
        Its width.
    df : float, default=1.0
        Its degrees of freedom.
    draws : int, default=2000
        Draws per row of ``density(X, method="importance")``.
    """

    scale: float = 0.2
    df: float = 1.0
    draws: int = 2000

    def check(self) -> None:
        """Check every setting."""
        check_number("scale", self.scale, above=0)
        check_number("df", self.df, above=SMALLEST_DF, below=LARGEST_DF)
        check_integer("draws", self.draws, minimum=1)


def student_t_draws(
    n_samples: int, dim: int, df: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Draws of the standard multivariate Student t and their log densities.

    Returns `(n_samples, dim)` draws and `(n_samples,)` log densities, float64 on the CPU.
    One chi-square is shared by all coordinates of a draw, so the density is the *multivariate* t;
    a product of univariate t densities belongs to other draws and biases eq. (5) upwards.

    >>> import numpy as np
    >>> draws, log_prob = student_t_draws(4, 2, df=1.0, rng=np.random.default_rng(0))
    >>> draws.shape, log_prob.shape
    (torch.Size([4, 2]), torch.Size([4]))
    """
    normal = rng.standard_normal((n_samples, dim))
    chi_square = rng.chisquare(df, size=(n_samples, 1))
    draws = torch.from_numpy(normal / np.sqrt(chi_square / df))
    return draws, student_t_log_prob(draws, df)


def student_t_log_prob(draws: Tensor, df: float) -> Tensor:
    """Log density of the standard multivariate Student t, `(..., dim)` → `(...)`.

    >>> import torch
    >>> student_t_log_prob(torch.zeros(1, 1, dtype=torch.float64), df=1.0).exp() * torch.pi
    tensor([1.0000], dtype=torch.float64)
    """
    dim = draws.shape[-1]
    constant = (
        math.lgamma((df + dim) / 2) - math.lgamma(df / 2) - 0.5 * dim * math.log(df * math.pi)
    )
    return constant - 0.5 * (df + dim) * torch.log1p(draws.square().sum(-1) / df)
