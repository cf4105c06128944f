"""An observation model without some features, which integrates them out of p(x)."""

import torch
from torch import Tensor

from roundtrip.model.noise.base import ObservationModel


class Unseen(ObservationModel):
    """p(x | z) of the other features: the factors of unseen features are replaced by 1.

    Parameters
    ----------
    noise : ObservationModel
        Observation model of all features.
    unseen : Tensor
        Mask of the features to leave out, `(features,)` bool.

    Examples
    --------
    >>> import torch
    >>> from roundtrip.model.noise import ConstantGaussian
    >>> noise = Unseen(ConstantGaussian(2, sigma=1.0), torch.tensor([True, False]))
    >>> noise.log_prob(torch.zeros(1, 2), torch.tensor([[9.0, 1.0]])).detach()
    tensor([[ 0.0000, -1.4189]])
    """

    unseen: Tensor

    def __init__(self, noise: ObservationModel, unseen: Tensor) -> None:
        super().__init__()
        self.noise = noise
        self.features, self.n_outputs = noise.features, noise.n_outputs
        self.register_buffer("unseen", unseen)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z), zero for unseen features, `(..., features)`."""
        return torch.where(self.unseen, 0.0, self.noise.log_prob(outputs, x))

    def outside_outputs(self) -> Tensor | None:
        """Return the outputs of rows far from all data, if the noise has such."""
        return self.noise.outside_outputs()

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the terms of all features."""
        return self.noise.row_terms(x)

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), zero for unseen features, `(..., features)`."""
        return torch.where(self.unseen, 0.0, self.noise.log_prob_of_terms(outputs, terms))

    def mean(self, outputs: Tensor) -> Tensor:
        """Return E(x | z) of all features."""
        return self.noise.mean(outputs)

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return p(x_j | z) of one feature, and its outputs."""
        return self.noise.factor(place)

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw all features."""
        return self.noise.sample(outputs, rng)
