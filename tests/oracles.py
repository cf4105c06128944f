"""Models whose density is known exactly."""

import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch import nn

from roundtrip import RoundtripModel


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
