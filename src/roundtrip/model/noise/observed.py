"""An observation model of rows with missing cells: their factors are left out of p(x | z)."""

import torch
from torch import Tensor

from roundtrip.model.noise.base import ObservationModel


class Observed(ObservationModel):
    """p(x | z) of the observed cells of rows of numbers; missing cells are NaN.

    Parameters
    ----------
    noise : ObservationModel
        Observation model of complete rows.

    Examples
    --------
    >>> import torch
    >>> from roundtrip.model.noise import ConstantGaussian
    >>> noise = Observed(ConstantGaussian(2, sigma=1.0))
    >>> noise.log_prob(torch.zeros(1, 2), torch.tensor([[torch.nan, 1.0]])).detach()
    tensor([[ 0.0000, -1.4189]])
    """

    def __init__(self, noise: ObservationModel) -> None:
        super().__init__()
        self.noise = noise
        self.features, self.n_outputs = noise.features, noise.n_outputs

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z), zero for missing cells, `(..., features)`."""
        return self.noise.log_prob(outputs, _filled(x)).masked_fill(x.isnan(), 0.0)

    def outside_outputs(self) -> Tensor | None:
        """Return the outputs of rows far from all data, if the noise has such."""
        return self.noise.outside_outputs()

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return which cells are missing, and the terms of the others."""
        return (x.isnan(), *self.noise.row_terms(_filled(x)))

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), zero for missing cells, `(..., features)`."""
        missing, *rest = terms
        return self.noise.log_prob_of_terms(outputs, tuple(rest)).masked_fill(missing, 0.0)

    def mean(self, outputs: Tensor) -> Tensor:
        """Return E(x | z) of all features."""
        return self.noise.mean(outputs)

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return p(x_j | z) of one feature, and its outputs."""
        return self.noise.factor(place)

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw all features."""
        return self.noise.sample(outputs, rng)


def _filled(x: Tensor) -> Tensor:
    return torch.where(x.isnan(), 0.0, x)
