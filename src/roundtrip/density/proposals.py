"""The paper's Student-t proposal of eq. (5): settings, draws and their density."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.parameters import Component, check_integer, check_number

SMALLEST_DF, LARGEST_DF = 0.1, 1e6
"""Limits of df, within which draws and densities are precise in float64."""


@dataclass(frozen=True, repr=False)
class Proposal(Component):  # numpydoc ignore=PR02
    """Settings of the paper's proposal, eq. (5): a Student t distribution centred at H(x).

    It is used by ``density(X, method="importance")`` and by the validation of the adversarial
    objective.

    Parameters
    ----------
    scale : float, default=0.2
        Scale, in all latent dimensions.
    df : float, default=1.0
        Degrees of freedom.
    draws : int, default=2000
        Draws per row of ``density(X, method="importance")``. The paper uses 40,000.

    Examples
    --------
    >>> Proposal(draws=40_000).scale
    0.2
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
    """Draw from the standard multivariate Student t distribution.

    All coordinates of a draw share one chi-square variable, so that its density is the
    *multivariate* t. A product of univariate t densities, as in the authors' code, is the density
    of other draws and biases eq. (5) upwards.

    Parameters
    ----------
    n_samples : int
        Number of draws.
    dim : int
        Dimension of a draw.
    df : float
        Degrees of freedom.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    draws : Tensor
        Draws, `(n_samples, dim)` float64 on the CPU.
    log_prob : Tensor
        Their log densities, `(n_samples,)`.

    Examples
    --------
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
    """Return the log density of the standard multivariate Student t, `(..., dim)` → `(...)`.

    Examples
    --------
    >>> import torch
    >>> student_t_log_prob(torch.zeros(1, 1, dtype=torch.float64), df=1.0).exp() * torch.pi
    tensor([1.0000], dtype=torch.float64)
    """
    dim = draws.shape[-1]
    constant = (
        math.lgamma((df + dim) / 2) - math.lgamma(df / 2) - 0.5 * dim * math.log(df * math.pi)
    )
    return constant - 0.5 * (df + dim) * torch.log1p(draws.square().sum(-1) / df)
