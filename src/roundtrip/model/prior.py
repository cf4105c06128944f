"""The prior p(z) of eq. (4): N(0, I) as in the paper, a fitted mixture of Gaussians, or others."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.quasirandom import SobolEngine

from roundtrip.parameters import Component, check_integer

Randomness = np.random.RandomState | np.random.Generator

CUBE_EDGE = 1e-10
WEIGHTS_SUM = 1e-6
"""Arithmetic error of a sum of weights."""

MOMENT_DRAWS = 4096
"""Draws that estimate the moments of a distribution without a formula for them."""


class LatentDistribution(nn.Module, ABC):
    """Base class of distributions p(z); subclasses implement `log_prob` and `sample`.

    The likelihood objective trains the parameters (`nn.Parameter`) of a subclass with the networks.

    Parameters
    ----------
    latent_dim : int
        Dimension of z.
    """

    is_standard_normal = False
    """Whether the distribution is N(0, I), for which the closed form of eq. (12) holds."""

    def __init__(self, latent_dim: int) -> None:
        super().__init__()
        self.latent_dim = latent_dim

    @abstractmethod
    def log_prob(self, z: Tensor) -> Tensor:
        """Return log p(z), one float64 value per vector along the last axis; differentiable."""

    @abstractmethod
    def sample(self, n_samples: int, rng: Randomness) -> Tensor:
        """Draw z, `(n_samples, latent_dim)` float64 on the CPU, from a NumPy generator."""

    def log_kernel(self, z: Tensor) -> Tensor:
        """Return log p(z) - log N(0 | 0, I) in the precision of z, for the bound of training."""
        constant = 0.5 * self.latent_dim * math.log(2 * math.pi)
        return (self.log_prob(z) + constant).to(z.dtype)

    def draw_like(self, codes: Tensor, rng: torch.Generator) -> Tensor:
        """Draw z in the shape, dtype and device of `codes` from a torch generator, for training."""
        seed = int(torch.randint(2**31, (1,), generator=rng, device=rng.device))
        return self.sample(len(codes), np.random.RandomState(seed)).to(codes)

    def spread(self, n_codes: int, seed: int) -> Tensor:
        """Return codes that represent p(z), `(n_codes, latent_dim)` float64 on the CPU.

        Subclasses may return quasi-random codes, which need not be independent.
        """
        return self.sample(n_codes, np.random.RandomState(seed % 2**32))

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return the mean and the lower Cholesky factor of the covariance, float64."""
        draws = self.sample(MOMENT_DRAWS, np.random.RandomState(0))
        covariance = torch.cov(draws.mT).reshape(self.latent_dim, self.latent_dim)
        return draws.mean(dim=0), torch.linalg.cholesky(covariance)


class StandardNormal(LatentDistribution):
    """N(0, I), the prior of the paper.

    Examples
    --------
    >>> prior = StandardNormal(2)
    >>> prior.log_prob(torch.zeros(3, 2)).shape, prior.sample(5, np.random.RandomState(0)).shape
    (torch.Size([3]), torch.Size([5, 2]))
    """

    is_standard_normal = True

    def log_prob(self, z: Tensor) -> Tensor:
        """Return log N(z | 0, I)."""
        return -0.5 * z.double().square().sum(-1) - 0.5 * self.latent_dim * math.log(2 * math.pi)

    def sample(self, n_samples: int, rng: Randomness) -> Tensor:
        """Draw standard normal codes."""
        return torch.from_numpy(rng.standard_normal((n_samples, self.latent_dim)))

    def log_kernel(self, z: Tensor) -> Tensor:
        """Return log N(z | 0, I) without its constant."""
        return -0.5 * z.square().sum(-1)

    def draw_like(self, codes: Tensor, rng: torch.Generator) -> Tensor:
        """Draw with the torch generator itself."""
        return torch.randn(codes.shape, generator=rng, device=codes.device, dtype=codes.dtype)

    def spread(self, n_codes: int, seed: int) -> Tensor:
        """Return scrambled Sobol points; `n_codes` must be a power of two."""
        return torch.special.ndtri(_cube(n_codes, self.latent_dim, seed)[:, 1:])

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return zero and the identity."""
        identity = torch.eye(self.latent_dim, dtype=torch.float64)
        return torch.zeros_like(identity[0]), identity


class GaussianMixture(LatentDistribution):
    """p(z) = Σ_k w_k N(z | m_k, L_k L_kᵀ).

    Parameters
    ----------
    weights : Tensor
        Weights w_k, `(components,)`, which sum to 1.
    means : Tensor
        Means m_k, `(components, latent_dim)`.
    factors : Tensor
        Lower Cholesky factors L_k, `(components, latent_dim, latent_dim)`.

    Examples
    --------
    >>> prior = GaussianMixture(torch.ones(1), torch.zeros(1, 2), torch.eye(2)[None])
    >>> prior.log_prob(torch.zeros(3, 2)).shape, prior.sample(5, np.random.RandomState(0)).shape
    (torch.Size([3]), torch.Size([5, 2]))
    """

    weights: Tensor
    means: Tensor
    factors: Tensor

    def __init__(self, weights: Tensor, means: Tensor, factors: Tensor) -> None:
        super().__init__(means.shape[1])
        self.register_buffer("weights", weights.double())
        self.register_buffer("means", means.double())
        self.register_buffer("factors", factors.double())

    def check(self, latent_dim: int) -> None:
        """Raise `ValueError` if this is no distribution of codes of `latent_dim` numbers."""
        shapes = self.weights.shape, self.means.shape, self.factors.shape
        k = len(self.weights)
        if shapes != ((k,), (k, latent_dim), (k, latent_dim, latent_dim)):
            raise ValueError(f"the prior has parts of shapes {shapes}, latent_dim is {latent_dim}")
        total = float(self.weights.sum())
        if not (bool((self.weights >= 0).all()) and abs(total - 1) < WEIGHTS_SUM):
            raise ValueError(f"the weights of the prior must sum to 1, but sum to {total:g}")
        diagonal = self.factors.diagonal(dim1=-2, dim2=-1)
        if not (bool((diagonal > 0).all()) and bool((self.factors.triu(1) == 0).all())):
            raise ValueError("the prior has covariances without a Cholesky factor")

    def log_prob(self, z: Tensor) -> Tensor:
        """Return log p(z), one value per vector along the last axis, in float64."""
        components, dim = self.means.shape
        identity = torch.eye(dim, dtype=torch.float64, device=self.factors.device)
        inverse = torch.linalg.solve_triangular(
            self.factors, identity.expand_as(self.factors), upper=False
        )
        # One matrix product serves all components: L⁻¹(z - m) = L⁻¹z - L⁻¹m. Components come last,
        # so that the sum over coordinates adds up whole vectors.
        shift = (inverse @ self.means[..., None])[..., 0].mT.flatten()
        standard = z.double() @ inverse.transpose(0, 1).flatten(0, 1).mT - shift
        distance = standard.unflatten(-1, (dim, components)).square().sum(-2)
        log_det = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = self.weights.log() - log_det - 0.5 * dim * math.log(2 * math.pi)
        return torch.logsumexp(constant - 0.5 * distance, dim=-1)

    def moments(self) -> tuple[Tensor, Tensor]:
        """Return the mean and the lower Cholesky factor of the covariance of the mixture."""
        mean = self.weights @ self.means
        within = (self.weights[:, None, None] * self.factors @ self.factors.mT).sum(dim=0)
        apart = self.means - mean
        between = (self.weights[:, None] * apart).mT @ apart
        return mean, torch.linalg.cholesky(within + between)

    def sample(self, n_samples: int, rng: Randomness) -> Tensor:
        """Draw z, `(n_samples, latent_dim)` float64 on the CPU."""
        weights = self.weights.cpu().numpy()
        chosen = rng.choice(len(weights), size=n_samples, p=weights / weights.sum())
        normal = rng.standard_normal((n_samples, self.latent_dim))
        return self._placed(torch.from_numpy(chosen), torch.from_numpy(normal))

    def spread(self, n_codes: int, seed: int) -> Tensor:
        """Return codes made from scrambled Sobol points; `n_codes` must be a power of two.

        The first coordinate of a point chooses the component, the others the place in it, so that
        evenly spread points give codes that are distributed like the mixture.
        """
        uniform = _cube(n_codes, self.latent_dim, seed)
        ends = torch.cumsum(self.weights.cpu(), dim=0)
        chosen = torch.searchsorted(ends, uniform[:, 0] * ends[-1])
        return self._placed(chosen, torch.special.ndtri(uniform[:, 1:]))

    def _placed(self, chosen: Tensor, normal: Tensor) -> Tensor:
        """Move standard normal vectors to the components chosen for them."""
        means, factors = self.means.cpu()[chosen], self.factors.cpu()[chosen]
        return means + (factors @ normal[..., None])[..., 0]


class Prior(Component, ABC):
    """Base class of the settings of p(z), `Roundtrip(prior=...)`."""

    @abstractmethod
    def build(self, latent_dim: int) -> LatentDistribution:
        """Return the distribution for training."""

    def restored(self, latent_dim: int, state: Mapping[str, Tensor]) -> LatentDistribution:
        """Rebuild the distribution of a model file from its state dict."""
        distribution = self.build(latent_dim)
        distribution.load_state_dict(state)
        return distribution


@dataclass(frozen=True, repr=False)
class NormalPrior(Prior):
    """N(0, I), as in the paper."""

    def build(self, latent_dim: int) -> StandardNormal:
        """Return N(0, I)."""
        return StandardNormal(latent_dim)


@dataclass(frozen=True, repr=False)
class MixturePrior(Prior):  # numpydoc ignore=PR02
    """A mixture of Gaussians, fitted to the codes of the rows after training with N(0, I).

    The mixture is used if it raises the likelihood of the validation rows.

    Parameters
    ----------
    components : int, default=16
        Largest number of Gaussians. Small tables get fewer. With 16 or more, tables of up to some
        500 rows may get one around each row instead, if held-out rows prefer that.

    Examples
    --------
    >>> MixturePrior().components
    16
    """

    components: int = 16

    def check(self) -> None:
        """Check the number of components."""
        check_integer("components", self.components, minimum=1)

    def build(self, latent_dim: int) -> StandardNormal:
        """Return N(0, I), which training uses."""
        return StandardNormal(latent_dim)

    def restored(self, latent_dim: int, state: Mapping[str, Tensor]) -> LatentDistribution:
        """Rebuild the fitted mixture, or N(0, I) if validation rejected the mixture."""
        if not state:
            return self.build(latent_dim)
        prior = GaussianMixture(state["weights"], state["means"], state["factors"])
        prior.check(latent_dim)
        return prior


def _cube(n_points: int, latent_dim: int, seed: int) -> Tensor:
    """Return scrambled Sobol points in the unit cube, `(n_points, 1 + latent_dim)`."""
    cube = SobolEngine(1 + latent_dim, scramble=True, seed=seed)
    # Points on the faces of the cube would become infinite codes.
    return cube.draw(n_points, dtype=torch.float64).clamp(CUBE_EDGE, 1 - CUBE_EDGE)
