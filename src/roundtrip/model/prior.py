"""The distribution of z where it was learnt: a mixture of Gaussians instead of N(0, I)."""

import math

import numpy as np
import torch
from torch import Tensor, nn

Randomness = np.random.RandomState | np.random.Generator


class MixturePrior(nn.Module):
    """p(z) = Σ_k w_k N(z | m_k, L_k L_kᵀ).

    Parameters
    ----------
    weights : `(components,)`, summing to 1.
    means : `(components, latent_dim)`.
    factors : `(components, latent_dim, latent_dim)`, lower Cholesky factors of the covariances.

    >>> prior = MixturePrior(torch.ones(1), torch.zeros(1, 2), torch.eye(2)[None])
    >>> prior.log_prob(torch.zeros(3, 2)).shape, prior.sample(5, np.random.RandomState(0)).shape
    (torch.Size([3]), torch.Size([5, 2]))
    """

    weights: Tensor
    means: Tensor
    factors: Tensor

    def __init__(self, weights: Tensor, means: Tensor, factors: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", weights.double())
        self.register_buffer("means", means.double())
        self.register_buffer("factors", factors.double())

    @classmethod
    def empty(cls, components: int, latent_dim: int) -> "MixturePrior":
        """One of a given size, to load a state into."""
        return cls(
            torch.full((components,), 1 / components),
            torch.zeros(components, latent_dim),
            torch.eye(latent_dim).expand(components, -1, -1).clone(),
        )

    def log_prob(self, z: Tensor) -> Tensor:
        """log p(z), one value for each vector along the last axis, in float64."""
        components, dim = self.means.shape
        identity = torch.eye(dim, dtype=torch.float64, device=self.factors.device)
        inverse = torch.linalg.solve_triangular(
            self.factors, identity.expand_as(self.factors), upper=False
        )
        # All components in one matrix product: L⁻¹(z - m) = L⁻¹z - L⁻¹m.
        standard = (
            z.double() @ inverse.flatten(0, 1).mT - (inverse @ self.means[..., None]).flatten()
        )
        distance = standard.unflatten(-1, (components, dim)).square().sum(-1)
        log_det = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        constant = self.weights.log() - log_det - 0.5 * dim * math.log(2 * math.pi)
        return torch.logsumexp(constant - 0.5 * distance, dim=-1)

    def moments(self) -> tuple[Tensor, Tensor]:
        """The mean and the lower Cholesky factor of the covariance of the whole mixture."""
        mean = self.weights @ self.means
        within = (self.weights[:, None, None] * self.factors @ self.factors.mT).sum(dim=0)
        apart = self.means - mean
        between = (self.weights[:, None] * apart).mT @ apart
        return mean, torch.linalg.cholesky(within + between)

    def sample(self, n_samples: int, random: Randomness) -> Tensor:
        """Draws, `(n_samples, latent_dim)` float64 on the CPU."""
        weights = self.weights.cpu().numpy()
        chosen = random.choice(len(weights), size=n_samples, p=weights / weights.sum())
        normal = random.standard_normal((n_samples, self.means.shape[1]))
        return self._placed(torch.from_numpy(chosen), torch.from_numpy(normal))

    def at(self, uniform: Tensor) -> Tensor:
        """Codes of points in the unit cube, `(points, 1 + latent_dim)`: `(points, latent_dim)`.

        Both are on the CPU, as draws are.

        The first coordinate chooses the component, the others the place in it, so that points that
        are spread evenly become codes that are spread like the mixture.
        """
        ends = torch.cumsum(self.weights.cpu(), dim=0)
        chosen = torch.searchsorted(ends, uniform[:, 0] * ends[-1])
        return self._placed(chosen, torch.special.ndtri(uniform[:, 1:]))

    def _placed(self, chosen: Tensor, normal: Tensor) -> Tensor:
        """Standard normal vectors moved to the components that were chosen for them."""
        means, factors = self.means.cpu()[chosen], self.factors.cpu()[chosen]
        return means + (factors @ normal[..., None])[..., 0]
