"""The Roundtrip model: a generator, an encoder, a Gaussian prior and Gaussian observation noise."""

import math

import torch
from torch import Tensor, nn

from roundtrip.noise import LARGEST_SIGMA, SMALLEST_SIGMA, isotropic_log_prob
from roundtrip.parameters import check_integer, check_number


class RoundtripModel(nn.Module):
    """p(x) = ∫ N(x | G(z), sigma² I) N(z | 0, I) dz, eq. (4), with H as the way back.

    Parameters
    ----------
    generator : module G from `(rows, latent_dim)` to `(rows, features)`.
    encoder : module H from `(rows, features)` to `(rows, latent_dim)`.
    latent_dim : dimension m of z; smaller than, equal to or larger than the number of features.
    sigma : standard deviation of the observation noise, positive.

    Any modules do. Both are used in evaluation mode when densities are estimated.

    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2), 2, sigma=0.1)
    >>> model.generate(torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    sigma: Tensor

    def __init__(
        self, generator: nn.Module, encoder: nn.Module, latent_dim: int, sigma: float
    ) -> None:
        super().__init__()
        for name, network in (("generator", generator), ("encoder", encoder)):
            if not isinstance(network, nn.Module):
                raise TypeError(f"{name} must be a torch.nn.Module, got {type(network).__name__}")
        self.generator = generator
        self.encoder = encoder
        self.latent_dim = check_integer("latent_dim", latent_dim, minimum=1)
        sigma = check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
        self.register_buffer("sigma", torch.tensor(sigma, dtype=torch.float64))

    @property
    def device(self) -> torch.device:
        """Where the networks live."""
        return next(self.generator.parameters(), self.sigma).device

    def generate(self, z: Tensor) -> Tensor:
        """G(z), `(rows, latent_dim)` → `(rows, features)`."""
        return self.generator(z.to(_dtype(self.generator)))

    def encode(self, x: Tensor) -> Tensor:
        """H(x), `(rows, features)` → `(rows, latent_dim)`: a start, not a maximiser."""
        return self.encoder(x.to(_dtype(self.encoder)))

    def log_prior(self, z: Tensor) -> Tensor:
        """log N(z | 0, I), one value for each vector along the last axis, in float64."""
        return -0.5 * z.double().square().sum(-1) - 0.5 * self.latent_dim * math.log(2 * math.pi)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x, z) = log p(x | z) + log p(z), one value a row, in float64."""
        squared = (x.double() - self.generate(z).double()).square().sum(-1)
        return isotropic_log_prob(squared, self.sigma, x.shape[-1]) + self.log_prior(z)


def _dtype(network: nn.Module) -> torch.dtype:
    """Each network is called in the precision of its own weights."""
    return next((p.dtype for p in network.parameters()), torch.get_default_dtype())
