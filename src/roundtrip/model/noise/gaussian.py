"""Gaussian observation models: the paper's, eq. (3), one sigma per feature, and sigma(z)."""

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
from roundtrip.model.noise.intervals import log_gaussian_interval
from roundtrip.parameters import check_number, is_auto

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def isotropic_log_prob(squared_residual: Tensor, sigma: Tensor | float, features: int) -> Tensor:
    """Return log N(x | G(z), sigma² I), the observation model of eq. (3).

    Parameters
    ----------
    squared_residual : Tensor
        The squared distance ``|x - G(z)|²``. Many sigmas can share one evaluation of G.
    sigma : Tensor or float
        Standard deviations, which broadcast with `squared_residual`.
    features : int
        Number n of features.

    Returns
    -------
    Tensor
        Log densities.

    Examples
    --------
    >>> import torch
    >>> isotropic_log_prob(torch.tensor([0.0, 1.0]), 1.0, features=2)
    tensor([-1.8379, -2.3379])
    """
    sigma = torch.as_tensor(sigma, dtype=squared_residual.dtype, device=squared_residual.device)
    return (
        -0.5 * squared_residual / sigma**2 - features * torch.log(sigma) - features * HALF_LOG_2PI
    )


class ConstantGaussian(ObservationModel):
    """N(x | G(z), diag(sigma²)) with one sigma for all features, eq. (3), or one per feature.

    Parameters
    ----------
    features : int
        Number of features of x.
    sigma : float, default=1.0
        Initial standard deviation.
    per_feature : bool, default=False
        Whether every feature has its own sigma ("diagonal") or all share one ("isotropic").
    floor : Tensor or float, default=0.0
        Smallest sigma, a number or `(features,)`.

    Examples
    --------
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
        """Whether every feature has its own sigma."""
        return self.log_sigma.ndim == 1

    @property
    def sigma(self) -> Tensor:
        """Standard deviation, `()` or `(features,)`, float64."""
        return torch.maximum(self.log_sigma.exp(), self.floor)

    @torch.no_grad()
    def set_sigma(self, sigma: float) -> None:
        """Set sigma of all features."""
        sigma = check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
        self.log_sigma.fill_(math.log(sigma))

    def start(self, data: Tensor, width: float) -> None:
        """Start with sigma = width, unless sigma is fixed."""
        if self.log_sigma.requires_grad:
            self.set_sigma(width)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log N(x_j | G(z)_j, sigma_j²), `(..., features)`."""
        sigma = self.sigma
        return -0.5 * ((x - outputs) / sigma).square() - sigma.log() - HALF_LOG_2PI

    def mean(self, outputs: Tensor) -> Tensor:
        """Return G(z)."""
        return outputs

    def variance(self, outputs: Tensor) -> Tensor:
        """Return sigma², `(..., features)`."""
        return self.sigma.square().expand_as(outputs)

    def cdf(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return Φ((x_j - G(z)_j) / sigma_j)."""
        return torch.special.ndtr((x - outputs) / self.sigma)

    def log_interval(self, outputs: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return log p(low < x_j <= high | z)."""
        sigma = self.sigma
        return log_gaussian_interval((low - outputs) / sigma, (high - outputs) / sigma)

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return the Gaussian of one feature, and its output."""
        sigma = self.sigma.detach()
        one = ConstantGaussian(1, sigma=float(sigma[place] if sigma.ndim else sigma))
        return one.requires_grad_(False).to(sigma.device), [place]

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw x = G(z) + ε, eq. (3)."""
        return outputs + self.sigma * normal(outputs.double(), rng)


@dataclass(frozen=True, repr=False)
class Isotropic(Noise):  # numpydoc ignore=PR02
    """N(x | G(z), sigma² I), eq. (3): the noise of the paper.

    Parameters
    ----------
    sigma : float or "auto", default="auto"
        Standard deviation in scaled units. "auto" is learnt with the networks, or chosen by
        validation for the adversarial objective.

    Examples
    --------
    >>> Isotropic(sigma=0.1).sigma
    0.1
    """

    sigma: float | Literal["auto"] = "auto"

    def check(self) -> None:
        """Check sigma."""
        check_sigma(self.sigma)

    def build(self, features: int, floor: Tensor) -> ConstantGaussian:
        """Return noise with one sigma for all features."""
        return _constant(features, self.sigma, floor, per_feature=False)


@dataclass(frozen=True, repr=False)
class Diagonal(Noise):  # numpydoc ignore=PR02
    """N(x | G(z), diag(sigma²)), one sigma per feature.

    Parameters
    ----------
    sigma : float or "auto", default="auto"
        Standard deviation of every feature in scaled units. "auto" is learnt with the networks.

    Examples
    --------
    >>> Diagonal().sigma
    'auto'
    """

    sigma: float | Literal["auto"] = "auto"

    def check(self) -> None:
        """Check sigma."""
        check_sigma(self.sigma)

    def build(self, features: int, floor: Tensor) -> ConstantGaussian:
        """Return noise with one sigma per feature."""
        return _constant(features, self.sigma, floor, per_feature=True)


def check_sigma(sigma: float | Literal["auto"]) -> None:
    """Raise `ValueError` unless sigma is "auto" or a number within the limits."""
    if not is_auto(sigma):
        check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)


def _constant(
    features: int, sigma: float | Literal["auto"], floor: Tensor, *, per_feature: bool
) -> ConstantGaussian:
    first = 1.0 if sigma == "auto" else sigma
    noise = ConstantGaussian(features, sigma=first, per_feature=per_feature, floor=floor)
    # A given sigma is not trained.
    return noise.requires_grad_(sigma == "auto")


@dataclass(frozen=True, repr=False)
class Heteroscedastic(Noise):
    """N(x_j | mean_j(z), sigma_j(z)²): Gaussian noise whose widths depend on z."""

    def build(self, features: int, floor: Tensor) -> "HeteroscedasticGaussian":
        """Return noise whose mean and width per feature are outputs of G."""
        return HeteroscedasticGaussian(features, floor=floor)


class HeteroscedasticGaussian(ObservationModel):
    """N(x_j | mean_j(z), sigma_j(z)²): G gives a mean and a width for each feature.

    Parameters
    ----------
    features : int
        Number of features of x.
    floor : Tensor or float, default=1e-3
        Smallest sigma, a number or `(features,)`.

    Examples
    --------
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
        """Start with sigma = width."""
        self.first_raw.fill_(inverse_softplus(width))

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log N(x_j | mean_j, sigma_j²), `(..., features)`."""
        mean, sigma = self._split(outputs)
        return -0.5 * ((x - mean) / sigma).square() - sigma.log() - HALF_LOG_2PI

    def mean(self, outputs: Tensor) -> Tensor:
        """Return the means."""
        return outputs[..., : self.features]

    def variance(self, outputs: Tensor) -> Tensor:
        """Return sigma_j(z)²."""
        return self._split(outputs)[1].square()

    def cdf(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return Φ((x_j - mean_j) / sigma_j)."""
        mean, sigma = self._split(outputs)
        return torch.special.ndtr((x - mean) / sigma)

    def log_interval(self, outputs: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return log p(low < x_j <= high | z)."""
        mean, sigma = self._split(outputs)
        return log_gaussian_interval((low - mean) / sigma, (high - mean) / sigma)

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw x around the means."""
        mean, sigma = self._split(outputs)
        return mean + sigma * normal(mean, rng)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = outputs.split(self.features, dim=-1)
        return mean, self.floor + nn.functional.softplus(raw + self.first_raw)


def inverse_softplus(value: float) -> float:
    """Return y with softplus(y) = `value`.

    Examples
    --------
    >>> round(inverse_softplus(math.log(2)), 6)
    0.0
    """
    return value + math.log(-math.expm1(-value))
