"""Estimators whose density is known exactly, made without a fit."""

import numpy as np
import pandas as pd
import torch
from oracles import LinearModel
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from torch import nn

from roundtrip import Roundtrip
from roundtrip.data import Schema
from roundtrip.density import FittedDensity
from roundtrip.model.core import RoundtripModel, posterior_outputs
from roundtrip.model.inputs import RowInputs
from roundtrip.model.networks import ResidualMLP
from roundtrip.model.noise import MixedNoise, MixtureNoise
from roundtrip.model.prior import GaussianMixture
from roundtrip.training.data import columns_of


def as_fitted(model, table, **parameters):
    """An estimator with this model of rows in their own units."""
    est = Roundtrip(scale=None, **parameters)
    schema, _ = Schema.fit(est, table, None, scale=None)
    est.fitted_ = FittedDensity(model.eval(), schema, seed=0)
    return est


class GaussianTable:
    """Columns a, b, c, ... that are jointly Gaussian, or a mixture of two such groups.

    x = W z + b + noise, where z is N(0, I), or with `groups` a mixture of two Gaussians.
    """

    def __init__(self, latent_dim, features, *, groups=False, sigma=0.5, seed=0):
        oracle = LinearModel(latent_dim, features, sigma=sigma, seed=seed)
        self.names = list("abcdefghijklmnopqrstuvwxyz"[:features])
        weight, bias = oracle.weight, oracle.bias
        self.shares, centres = np.ones(1), np.zeros((1, latent_dim))
        spreads = np.ones(1)
        model = oracle.model
        if groups:
            self.shares, spreads = np.array([0.7, 0.3]), np.array([1.0, 0.6])
            centres = np.zeros((2, latent_dim))
            centres[1, 0] = 3.0
            identity = torch.eye(latent_dim).double()
            prior = GaussianMixture(
                torch.from_numpy(self.shares),
                torch.from_numpy(centres),
                torch.stack([spread * identity for spread in spreads.tolist()]),
            )
            model = RoundtripModel(model.generator, model.encoder, latent_dim, sigma, prior=prior)
        self.means = bias + centres @ weight.T
        noise = sigma**2 * np.eye(features)
        self.covariances = np.stack([s**2 * weight @ weight.T + noise for s in spreads])
        self.est = as_fitted(model, self.table(50, seed=9))

    def table(self, rows, seed=1):
        """Draw rows."""
        rng = np.random.default_rng(seed)
        group = rng.choice(len(self.shares), size=rows, p=self.shares)
        normal = rng.normal(size=(rows, len(self.names)))
        factors = np.linalg.cholesky(self.covariances)[group]
        x = self.means[group] + (factors @ normal[..., None])[..., 0]
        return pd.DataFrame(x, columns=self.names)

    def log_density(self, x):
        """Log densities of the observed cells of `(rows, columns)`, NaN for missing cells."""
        found = np.empty(len(x))
        for row, cells in enumerate(x):
            seen = ~np.isnan(cells)
            parts = [
                np.log(share)
                + multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(
                    cells[seen]
                )
                for share, mean, covariance in zip(
                    self.shares, self.means, self.covariances, strict=True
                )
            ]
            found[row] = logsumexp(parts)
        return found

    def given(self, target, values):
        """The mixture of Gaussians of one column given values of others: shares, means, sds."""
        j = self.names.index(target)
        known = [self.names.index(name) for name in values]
        x = np.array(list(values.values()))
        log_shares, means, variances = [], [], []
        for share, mean, covariance in zip(self.shares, self.means, self.covariances, strict=True):
            inner = covariance[np.ix_(known, known)]
            apart = x - mean[known]
            slope = np.linalg.solve(inner, covariance[known, j]) if known else np.zeros(0)
            means.append(mean[j] + slope @ apart)
            variances.append(covariance[j, j] - slope @ covariance[known, j])
            log_shares.append(np.log(share))
            if known:
                log_shares[-1] += -0.5 * apart @ np.linalg.solve(inner, apart)
                log_shares[-1] += -0.5 * np.linalg.slogdet(inner)[1]
        shares = np.exp(np.array(log_shares) - max(log_shares))
        return Law(shares / shares.sum(), np.array(means), np.sqrt(variances))


class BentTable:
    """Columns a, b, c, ... around curves of z, whose density is a sum over a grid of z.

    x_j = sin(w_j z + c_j) + 0.4 (v_j z)² / m + noise, where z has m = 1 or 2 dimensions.
    """

    def __init__(self, latent_dim, features, *, sigma=0.3, seed=0):
        self.names = list("abcdefghijklmnopqrstuvwxyz"[:features])
        self.sigma = sigma
        rng = torch.Generator().manual_seed(seed)
        self.G = _Bent(latent_dim, features, rng)
        self.model = RoundtripModel(self.G, _Nearest(self.G, latent_dim), latent_dim, sigma)
        axis = torch.linspace(-7, 7, 4001 if latent_dim == 1 else 401, dtype=torch.float64)
        self.grid = torch.cartesian_prod(*[axis] * latent_dim).view(-1, latent_dim)
        self.log_weights = self.model.prior.log_prob(self.grid)
        self.log_weights += latent_dim * (axis[1] - axis[0]).log()
        self.centres = self.G(self.grid)
        self.est = as_fitted(self.model, self.table(50, seed=9))

    def table(self, rows, seed=1):
        """Draw rows."""
        rng = np.random.default_rng(seed)
        z = torch.from_numpy(rng.normal(size=(rows, self.model.latent_dim)))
        x = self.G(z).numpy() + self.sigma * rng.normal(size=(rows, len(self.names)))
        return pd.DataFrame(x, columns=self.names)

    def log_posterior(self, cells):
        """Log of p(observed cells, z) times the size of a cell of the grid, of one row."""
        seen = ~np.isnan(cells)
        apart = torch.from_numpy(cells[seen]) - self.centres[:, torch.from_numpy(seen)]
        constant = seen.sum() * np.log(self.sigma * np.sqrt(2 * np.pi))
        return self.log_weights - 0.5 * (apart / self.sigma).square().sum(1) - constant

    def log_density(self, x):
        """Log densities of the observed cells of `(rows, columns)`, NaN for missing cells."""
        return np.array([float(torch.logsumexp(self.log_posterior(row), 0)) for row in x])

    def given(self, target, values):
        """The distribution of one column given values of others, as a mixture over the grid."""
        cells = np.array([values.get(name, np.nan) for name in self.names])
        shares = torch.softmax(self.log_posterior(cells), 0)
        likely = shares > 1e-9
        means = self.centres[likely, self.names.index(target)].numpy()
        return Law(shares[likely].numpy(), means, np.full(len(means), self.sigma))


class _Bent(nn.Module):
    def __init__(self, latent_dim, features, rng):
        super().__init__()
        self.w = torch.randn(latent_dim, features, generator=rng).double()
        self.v = torch.randn(latent_dim, features, generator=rng).double()
        self.c = torch.randn(features, generator=rng).double()

    def forward(self, z):
        z = z.double()
        return torch.sin(1.5 * z @ self.w + self.c) + 0.4 * (z @ self.v).square() / z.shape[1]


class _Nearest(nn.Module):
    """H(x) is the z of a coarse grid whose G(z) is nearest: one mode of several."""

    def __init__(self, G, latent_dim, points=33):
        super().__init__()
        axis = torch.linspace(-4, 4, points, dtype=torch.float64)
        self.grid = torch.cartesian_prod(*[axis] * latent_dim).view(-1, latent_dim)
        self.centres = G(self.grid)

    def forward(self, x):
        return self.grid[torch.cdist(x.double(), self.centres).argmin(dim=1)]


class Law:
    """A mixture of one-dimensional Gaussians."""

    def __init__(self, shares, means, sds):
        self.shares, self.means, self.sds = shares, means, sds

    def cdf(self, x):
        return norm.cdf(np.asarray(x)[..., None], self.means, self.sds) @ self.shares

    def pdf(self, x):
        return norm.pdf(np.asarray(x)[..., None], self.means, self.sds) @ self.shares

    @property
    def mean(self):
        return self.shares @ self.means

    @property
    def std(self):
        return np.sqrt(self.shares @ (self.sds**2 + (self.means - self.mean) ** 2))


class MixedTable:
    """Numbers, a count, a category, ordered levels and dates whose z has one dimension.

    Every probability is a sum over a grid of z of products of the noise's densities, which are
    summed over fine steps of a column.
    """

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=400)
        size = np.digitize(z + rng.normal(size=400), [-0.7, 0.8])
        self.learned = pd.DataFrame(
            {
                "height": 170 + 8 * z + 3 * rng.normal(size=400),
                "visits": rng.poisson(np.exp(1.0 + 0.7 * z)),
                "colour": np.array(["red", "green", "blue"])[
                    np.digitize(rng.normal(size=400) - z, [0, 1])
                ],
                "size": pd.Categorical.from_codes(size, ["S", "M", "L"], ordered=True),
                "day": pd.Timestamp("2020-01-01")
                + pd.to_timedelta(rng.integers(100, size=400), "D"),
            }
        )
        parameters = {"random_state": seed}
        holder = Roundtrip()
        self.schema, rows = Schema.fit(holder, self.learned, None, scale="standard")
        columns = columns_of(self.schema)
        inputs = RowInputs(columns)
        numbers = MixtureNoise(3, moving=2, fixed=6)
        self.noise = MixedNoise(columns, numbers)
        self.noise.start(rows.x, 0.5)
        torch_rng = torch.Generator().manual_seed(seed)
        G = ResidualMLP(
            1, self.noise.n_outputs, width=16, blocks=1, linear_outputs=0, rng=torch_rng
        )
        with torch.no_grad():
            for weight in G.parameters():
                weight.copy_(0.35 * torch.randn(weight.shape, generator=torch_rng))
        H = nn.Linear(inputs.width, posterior_outputs(1))
        nn.init.zeros_(H.weight)
        nn.init.zeros_(H.bias)
        self.model = RoundtripModel(
            G, H, 1, noise=self.noise, has_posterior=True, inputs=inputs
        ).requires_grad_(False)
        self.est = Roundtrip(**parameters)
        self.schema.name_features(self.est)
        self.est.fitted_ = FittedDensity(self.model.eval(), self.schema, seed=0)
        self.z = torch.linspace(-6, 6, 241, dtype=torch.float64)[:, None]
        self.outputs = self.model.decode(self.z).double()
        self._masses = {}
        self.prior = torch.softmax(self.model.prior.log_prob(self.z), dim=0).numpy()

    def place(self, name):
        return list(self.learned).index(name)

    def masses(self, name):
        """Values of a column, `(values,)`, and their probabilities given each z, `(z, values)`."""
        if name not in self._masses:
            self._masses[name] = self._masses_of(name)
        return self._masses[name]

    def _masses_of(self, name):
        place = self.place(name)
        kind = self.schema.kinds[place]
        if kind.kind == "category":
            log_p = self.noise.log_probabilities(self.outputs)[place]
            return np.array(kind.levels, dtype=object), log_p.exp().numpy()
        parts = 8
        low, high = self.learned[name].min(), self.learned[name].max()
        if name == "height":
            values = np.linspace(low - 30, high + 30, 1201)
            fine, width = values, values[1] - values[0]
        else:
            values = kind.encoded(pd.Series([low, high]))
            values = np.arange(values[0] - 20, values[1] + 21)
            steps = (np.arange(parts) + 0.5) / parts - 0.5
            fine, width = (values[:, None] + steps).ravel(), 1 / parts
        scaling = self.schema.scaling
        x = torch.full((len(fine), len(self.learned.columns)), torch.nan).double()
        x[:, place] = torch.from_numpy((fine - scaling.shift[place]) / scaling.scale[place])
        log_p = self.noise.log_prob(self.outputs[:, None], x[None])[..., place]
        p = log_p.exp().numpy() * width / scaling.scale[place]
        return values, p.reshape(len(p), len(values), -1).sum(-1)

    def posterior(self, **conditions):
        """Probability of each z given masks of values of some columns."""
        weights = self.prior.copy()
        for name, holds in conditions.items():
            values, p = self.masses(name)
            weights *= p @ np.array([float(holds(value)) for value in values])
        return weights / weights.sum()

    def law(self, name, **conditions):
        """Values of a column and their probabilities given conditions, which sum to about 1."""
        values, p = self.masses(name)
        return values, self.posterior(**conditions) @ p
