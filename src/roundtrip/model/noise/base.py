"""What every observation model offers."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-7, 1e7
"""Beyond these, residuals over sigma lose their digits in float64."""


class ObservationModel(nn.Module):
    """p(x | z) as a product over the features, each a simple distribution that G describes.

    Because it is a product, features can be left out or looked at one by one.

    Attributes
    ----------
    features : columns of x.
    n_outputs : numbers that G has to give for each row; the first `features` of them are where
        the features lie.
    """

    features: int
    n_outputs: int

    @abstractmethod
    def start(self, data: Tensor, width: float) -> None:
        """Prepare for training on `(rows, features)` data that scatters by about `width`."""

    @abstractmethod
    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """log p(x_j | z) of each feature, `(..., features)`.

        `outputs` `(..., n_outputs)` is what G makes of z, `x` is `(..., features)`; leading axes
        broadcast.
        """

    @abstractmethod
    def mean(self, outputs: Tensor) -> Tensor:
        """E(x | z), `(..., features)`."""

    @abstractmethod
    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """One draw of x for each row of outputs, `(rows, features)`; `generator` is the CPU's."""


def normal(like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal numbers in the shape, type and place of `like`, from a CPU generator."""
    return torch.randn(like.shape, generator=generator, dtype=like.dtype).to(like.device)
