"""What every observation model p(x | z) offers."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from roundtrip.parameters import Component

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-7, 1e7
"""Beyond these, residuals over sigma lose their digits in float64."""


class ObservationModel(nn.Module, ABC):
    """p(x | z) as a product over the features, each a simple distribution that G describes.

    Because it is a product, features can be left out or looked at one by one. Subclasses set the
    two attributes and implement `log_prob`, `mean` and `sample`; `start` if they can use the data.

    Attributes
    ----------
    features : int
        Columns of x.
    n_outputs : int
        Numbers that G has to give per row; the first `features` of them are where the features
        lie.
    """

    features: int
    n_outputs: int

    @property
    def sigma(self) -> Tensor | None:
        """Standard deviation of Gaussian noise around G(z), if it is that with the same width for
        all z: `()` or `(features,)`. None for all other noise.
        """
        return None

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
    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """One draw of x per row of outputs, `(rows, features)`; `rng` is on the CPU."""


class Noise(Component, ABC):
    """Settings of an observation model: what `Roundtrip(noise=...)` takes."""

    @abstractmethod
    def build(self, features: int, floor: Tensor) -> ObservationModel:
        """A new observation model for `features` columns.

        `floor`, `(features,)`, is the width per column below which noise would only follow its
        rounding.
        """


def normal(like: Tensor, rng: torch.Generator) -> Tensor:
    """Standard normal numbers in the shape, dtype and device of `like`, from a CPU `rng`."""
    return torch.randn(like.shape, generator=rng, dtype=like.dtype).to(like.device)
