"""Gaussian observation models: constant width (the paper's, and one a feature) or sigma(z)."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from roundtrip.model.noise.base import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    Noise,
    ObservationModel,
    normal,
)
from roundtrip.parameters import check_number, is_auto

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def isotropic_log_prob(squared_residual: Tensor, sigma: Tensor | float, features: int) -> Tensor:
    """log N(x | G(z), sigma² I) from ``|x - G(z)|²``, the observation model of eq. (3).

    It takes the squared residual so that many sigmas share one evaluation of G; shapes broadcast.

    >>> import torch
    >>> isotropic_log_prob(torch.tensor([0.0, 1.0]), 1.0, features=2)
    tensor([-1.8379, -2.3379])
    """
    sigma = torch.as_tensor(sigma, dtype=squared_residual.dtype, device=squared_residual.device)
    return (
        -0.5 * squared_residual / sigma**2 - features * torch.log(sigma) - features * HALF_LOG_2PI
    )


class ConstantGaussian(ObservationModel):
    """N(x | G(z), diag(sigma²)) with one sigma for all features (the paper's) or one for each.

    Parameters
    ----------
    features : columns of x.
    sigma : standard deviation to begin with.
    per_feature : a sigma for each feature ("diagonal") instead of one ("isotropic").
    floor : sigma never gets smaller while it is learnt, `(features,)` or a number.

    >>> import torch
    >>> noise = ConstantGaussian(2, sigma=1.0)
    >>> noise.log_prob(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]])).detach()
    tensor([[-0.9189, -1.4189]])
    """

    floor: Tensor

    def __init__(
        self,
        features: int,
        *,
        sigma: float = 1.0,
        per_feature: bool = False,
        floor: Tensor | float = 0.0,
    ) -> None:
        super().__init__()
        self.features = self.n_outputs = features
        shape = (features,) if per_feature else ()
        floor = torch.as_tensor(floor, dtype=torch.float64)
        self.register_buffer(
            "floor", floor.expand(features).clone() if per_feature else floor.min()
        )
        self.log_sigma = nn.Parameter(torch.zeros(shape, dtype=torch.float64))
        self.set_sigma(sigma)

    @property
    def per_feature(self) -> bool:
        """Whether every feature has a sigma of its own."""
        return self.log_sigma.ndim == 1

    @property
    def sigma(self) -> Tensor:
        """Standard deviation, `()` or `(features,)`, float64."""
        return torch.maximum(self.log_sigma.exp(), self.floor)

    @torch.no_grad()
    def set_sigma(self, sigma: float) -> None:
        """Make all sigmas one number."""
        sigma = check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
        self.log_sigma.fill_(math.log(sigma))

    def start(self, data: Tensor, width: float) -> None:
        """Begin with sigma = width, unless sigma is fixed."""
        if self.log_sigma.requires_grad:
            self.set_sigma(width)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """log N(x_j | G(z)_j, sigma_j²), `(..., features)`."""
        sigma = self.sigma
        return -0.5 * ((x - outputs) / sigma).square() - sigma.log() - HALF_LOG_2PI

    def mean(self, outputs: Tensor) -> Tensor:
        """G(z) itself."""
        return outputs

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """G(z) plus noise."""
        return outputs + self.sigma * normal(outputs.double(), rng)


@dataclass(frozen=True, repr=False)
class Isotropic(Noise):
    """N(x | G(z), sigma² I), eq. (3): the noise of the paper.

    Parameters
    ----------
    sigma : float or "auto", default="auto"
        Standard deviation in scaled units. "auto": learnt with the networks; the adversarial
        objective chooses it by validation.
    """

    sigma: float | Literal["auto"] = "auto"

    def check(self) -> None:
        """Check sigma."""
        check_sigma(self.sigma)

    def build(self, features: int, floor: Tensor) -> ConstantGaussian:
        """One sigma for all features."""
        return _constant(features, self.sigma, floor, per_feature=False)


@dataclass(frozen=True, repr=False)
class Diagonal(Noise):
    """N(x | G(z), diag(sigma²)), one sigma per feature.

    Parameters
    ----------
    sigma : float or "auto", default="auto"
        Standard deviation of every feature in scaled units; "auto": learnt with the networks.
    """

    sigma: float | Literal["auto"] = "auto"

    def check(self) -> None:
        """Check sigma."""
        check_sigma(self.sigma)

    def build(self, features: int, floor: Tensor) -> ConstantGaussian:
        """One sigma per feature."""
        return _constant(features, self.sigma, floor, per_feature=True)


def check_sigma(sigma: float | Literal["auto"]) -> None:
    """Refuse a width that is not "auto" and not a usable number."""
    if not is_auto(sigma):
        check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)


def _constant(
    features: int, sigma: float | Literal["auto"], floor: Tensor, *, per_feature: bool
) -> ConstantGaussian:
    first = 1.0 if sigma == "auto" else sigma
    noise = ConstantGaussian(features, sigma=first, per_feature=per_feature, floor=floor)
    # A sigma that was asked for stays.
    return noise.requires_grad_(sigma == "auto")


@dataclass(frozen=True, repr=False)
class Heteroscedastic(Noise):
    """N(x_j | mean_j(z), sigma_j(z)²): Gaussian noise whose widths depend on z."""

    def build(self, features: int, floor: Tensor) -> "HeteroscedasticGaussian":
        """A mean and a width per feature from G."""
        return HeteroscedasticGaussian(features, floor=floor)


class HeteroscedasticGaussian(ObservationModel):
    """N(x_j | mean_j(z), sigma_j(z)²): G gives a mean and a width for each feature.

    >>> import torch
    >>> noise = HeteroscedasticGaussian(3)
    >>> noise.log_prob(torch.zeros(5, noise.n_outputs), torch.zeros(5, 3)).shape
    torch.Size([5, 3])
    """

    floor: Tensor
    first_raw: Tensor

    def __init__(self, features: int, *, floor: Tensor | float = 1e-3) -> None:
        super().__init__()
        self.features, self.n_outputs = features, 2 * features
        floor = torch.as_tensor(floor, dtype=torch.float32).expand(features)
        self.register_buffer("floor", floor.clone())
        self.register_buffer("first_raw", torch.zeros(()))

    @torch.no_grad()
    def start(self, data: Tensor, width: float) -> None:
        """Begin with sigma = width."""
        self.first_raw.fill_(inverse_softplus(width))

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """log N(x_j | mean_j, sigma_j²), `(..., features)`."""
        mean, sigma = self._split(outputs)
        return -0.5 * ((x - mean) / sigma).square() - sigma.log() - HALF_LOG_2PI

    def mean(self, outputs: Tensor) -> Tensor:
        """The means."""
        return outputs[..., : self.features]

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """The means plus noise of the widths."""
        mean, sigma = self._split(outputs)
        return mean + sigma * normal(mean, rng)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = outputs.split(self.features, dim=-1)
        return mean, self.floor + nn.functional.softplus(raw + self.first_raw)


def inverse_softplus(value: float) -> float:
    """What softplus makes `value` of.

    >>> round(inverse_softplus(math.log(2)), 6)
    0.0
    """
    return value + math.log(-math.expm1(-value))
