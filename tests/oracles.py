"""Models whose density is known exactly."""

import math

import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch import nn

from roundtrip import RoundtripModel
from roundtrip.data import Rows
from roundtrip.model.core import posterior_outputs
from roundtrip.model.networks import ResidualMLP
from roundtrip.model.noise import ConstantGaussian, isotropic_log_prob


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
        # Not by scipy, whose draws depend on the eigenvectors that a machine finds.
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((rows, self.weight.shape[1]))
        noise = rng.standard_normal((rows, len(self.bias)))
        return z @ self.weight.T + self.bias + self.sigma * noise

    def log_density(self, x: np.ndarray) -> np.ndarray:
        return np.atleast_1d(self.distribution.logpdf(x))


def with_wide_posterior(oracle, width):
    """The model with an encoder that gives the posterior, its standard deviations times `width`."""
    weight, bias = torch.from_numpy(oracle.weight), torch.from_numpy(oracle.bias)
    dim = weight.shape[1]
    precision = torch.eye(dim).double() + weight.T @ weight / oracle.sigma**2
    to_mean = torch.linalg.solve(precision, weight.T) / oracle.sigma**2
    factor = width * torch.linalg.cholesky(torch.linalg.inv(precision))
    row, column = torch.tril_indices(dim, dim)
    entries = factor[row, column]
    entries = torch.where(row == column, torch.log(torch.expm1(entries)), entries)  # softplus⁻¹
    H = torch.nn.Linear(len(bias), posterior_outputs(dim), dtype=torch.float64)
    with torch.no_grad():
        H.weight.zero_()
        H.weight[:dim] = to_mean
        H.bias[:dim] = -to_mean @ bias
        H.bias[dim:] = entries
    return RoundtripModel(oracle.model.generator, H, dim, oracle.sigma, has_posterior=True)


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
        z = torch.from_numpy(grid.reshape(-1, latent_dim))
        generated = _Fold()(z)
        order = generated[:, 0].argsort()
        self._generated = generated[order]
        self._first = self._generated[:, 0].contiguous()
        self._log_weight = self.model.prior.log_prob(z[order])
        self._log_weight += latent_dim * np.log(axis[1] - axis[0])

    def points(self, rows: int, seed: int = 1) -> np.ndarray:
        rng = np.random.default_rng(seed)
        z = torch.from_numpy(rng.standard_normal((rows, self.model.latent_dim)))
        clean = _Fold()(z).numpy()
        return clean + self.sigma * rng.standard_normal(clean.shape)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        values = []
        for row in torch.from_numpy(x):
            # The other points of the grid are farther off than ten sigma in the first feature.
            limits = row[0] + 10 * self.sigma * torch.tensor([-1.0, 1.0])
            start, end = torch.searchsorted(self._first, limits).tolist()
            squared = (row - self._generated[start:end]).square().sum(1)
            log_likelihood = isotropic_log_prob(squared, self.sigma, x.shape[1])
            values.append(torch.logsumexp(log_likelihood + self._log_weight[start:end], dim=0))
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


def residual_model(latent_dim, features, *, sigma=0.5):
    """G and H as small residual networks, H with a posterior; linear until they are trained."""
    rng = torch.Generator().manual_seed(0)
    sizes = {"width": 16, "blocks": 1, "rng": rng}
    code = posterior_outputs(latent_dim)
    return RoundtripModel(
        ResidualMLP(latent_dim, features, linear_outputs=features, **sizes),
        ResidualMLP(features, code, linear_outputs=code, **sizes),
        latent_dim,
        noise=ConstantGaussian(features, sigma=sigma),
        has_posterior=True,
    )


def correlated_rows(rows=4000, seed=0):
    """Three correlated normal columns of which two numbers explain nearly all."""
    rng = np.random.default_rng(seed)
    mixing = np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [0.2, -0.5, 0.1]])
    return Rows.without_context(torch.from_numpy(rng.normal(size=(rows, 3)) @ mixing.T + 0.3))


class OneSide(nn.Module):
    """Encoder of G(z) = z² that only knows the positive z."""

    def __init__(self, width):
        super().__init__()
        self.raw = nn.Parameter(torch.tensor([math.log(math.expm1(width))]).double())

    def forward(self, x):
        return torch.cat([x.clamp_min(0.01).sqrt(), self.raw.expand(len(x), 1)], dim=1)
