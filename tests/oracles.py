"""Models whose density is known exactly."""

import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch import nn

from roundtrip import RoundtripModel
from roundtrip.model.noise import isotropic_log_prob


class LinearModel:
    """x = W z + b + noise: p(x) is N(b, W Wᵀ + sigma² I) and the posterior of z is Gaussian."""

    def __init__(self, latent_dim: int, features: int, *, sigma: float = 0.5, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.weight = rng.normal(size=(features, latent_dim)) / np.sqrt(latent_dim)
        self.bias = rng.normal(size=features)
        self.sigma = sigma
        generator = nn.Linear(latent_dim, features, dtype=torch.float64)
        encoder = nn.Linear(features, latent_dim, dtype=torch.float64)
        precision = np.eye(latent_dim) + self.weight.T @ self.weight / sigma**2
        to_mean = np.linalg.solve(precision, self.weight.T) / sigma**2
        # H is a little off the posterior mean, as a trained H is.
        to_mean = to_mean + 0.02 * rng.normal(size=to_mean.shape)
        with torch.no_grad():
            generator.weight.copy_(torch.from_numpy(self.weight))
            generator.bias.copy_(torch.from_numpy(self.bias))
            encoder.weight.copy_(torch.from_numpy(to_mean))
            encoder.bias.copy_(torch.from_numpy(-to_mean @ self.bias))
        self.model = RoundtripModel(generator, encoder, latent_dim, sigma)
        covariance = self.weight @ self.weight.T + sigma**2 * np.eye(features)
        self.distribution = multivariate_normal(self.bias, covariance)

    def points(self, rows: int, seed: int = 1) -> np.ndarray:
        return np.atleast_2d(self.distribution.rvs(rows, random_state=seed)).reshape(rows, -1)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        return np.atleast_1d(self.distribution.logpdf(x))


class FoldedModel:
    """G folds the latent space, so that the posterior of z has two modes in each of its folds.

    With one latent dimension G(z) = z²; with two G(z) = (z_1² - 0.3 z_2, z_1 z_2 + 0.5 z_2²). The
    density is computed by quadrature.
    """

    def __init__(self, latent_dim: int, *, sigma: float = 0.2):
        self.model = RoundtripModel(_Fold(), _Unfold(latent_dim), latent_dim, sigma)
        self.sigma = sigma
        axis = np.linspace(-6, 6, 20_001 if latent_dim == 1 else 801)
        grid = np.stack(np.meshgrid(*[axis] * latent_dim, indexing="ij"), axis=-1)
        self._z = torch.from_numpy(grid.reshape(-1, latent_dim))
        self._cell = (axis[1] - axis[0]) ** latent_dim

    def points(self, rows: int, seed: int = 1) -> np.ndarray:
        rng = np.random.default_rng(seed)
        z = torch.from_numpy(rng.standard_normal((rows, self.model.latent_dim)))
        clean = _Fold()(z).numpy()
        return clean + self.sigma * rng.standard_normal(clean.shape)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        generated = _Fold()(self._z)
        log_prior = self.model.prior.log_prob(self._z)
        values = []
        for row in torch.from_numpy(x):
            squared = (row - generated).square().sum(1)
            log_likelihood = isotropic_log_prob(squared, self.sigma, x.shape[1])
            values.append(torch.logsumexp(log_likelihood + log_prior, dim=0) + np.log(self._cell))
        return torch.stack(values).numpy()


class _Fold(nn.Module):
    def forward(self, z):
        if z.shape[1] == 1:
            return z**2
        first, second = z.unbind(1)
        return torch.stack([first**2 - 0.3 * second, first * second + 0.5 * second**2], dim=1)


class _Unfold(nn.Module):
    """Knows one of the modes only, and only roughly."""

    def __init__(self, latent_dim):
        super().__init__()
        self.latent_dim = latent_dim

    def forward(self, x):
        first = x[:, :1].clamp_min(0.01).sqrt()
        return torch.cat([first, 0.5 * x[:, 1:2]], dim=1)[:, : self.latent_dim]
