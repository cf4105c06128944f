"""Marginal densities of rows with missing cells, against closed forms."""

import numpy as np
import torch
from oracles import LinearModel
from scipy.stats import multivariate_normal
from torch import nn

from roundtrip.density.estimate import estimate
from roundtrip.model.columns import Columns
from roundtrip.model.core import RoundtripModel, posterior_outputs
from roundtrip.model.inputs import RowInputs
from roundtrip.model.noise import ConstantGaussian, MixedNoise


def incomplete_linear_model(latent_dim, features, seed=0):
    """A linear-Gaussian model whose encoder gives a vague posterior, whatever is missing."""
    oracle = LinearModel(latent_dim, features, seed=seed)
    columns = Columns((None,) * features, (True,) * features)
    inputs = RowInputs(columns)
    encoder = nn.Linear(inputs.width, posterior_outputs(latent_dim), dtype=torch.float64)
    nn.init.zeros_(encoder.weight)
    nn.init.zeros_(encoder.bias)
    noise = MixedNoise(columns, ConstantGaussian(features, sigma=oracle.sigma))
    return oracle, RoundtripModel(
        oracle.model.generator,
        encoder,
        latent_dim,
        noise=noise,
        has_posterior=True,
        inputs=inputs,
    )


def holes(x, seed=0):
    rng = np.random.default_rng(seed)
    mask = rng.random(x.shape) < 0.4
    mask[np.arange(len(x)), rng.integers(x.shape[1], size=len(x))] = False
    return np.where(mask, np.nan, x)


def marginal_log_density(oracle, x):
    found = np.empty(len(x))
    law = oracle.distribution
    for row, values in enumerate(x):
        seen = ~np.isnan(values)
        found[row] = multivariate_normal(law.mean[seen], law.cov[np.ix_(seen, seen)]).logpdf(
            values[seen]
        )
    return found


def test_marginal_densities_agree_with_the_closed_form_within_their_certificates():
    errors = []
    for latent_dim, features in ((1, 3), (3, 5), (5, 8)):
        oracle, model = incomplete_linear_model(latent_dim, features)
        x = holes(oracle.points(100))
        result = estimate(model, x, tol=0.05)
        assert result.converged.mean() > 0.95
        z = (result.log_density - marginal_log_density(oracle, x)) / result.std_error
        errors.append(z[result.converged])
    z = np.concatenate(errors)
    assert 0.75 < z.std() < 1.25
    assert abs(z.mean()) < 0.25
    assert np.mean(np.abs(z) > 4) < 0.01


def test_a_row_with_missing_cells_does_not_depend_on_other_rows():
    _, model = incomplete_linear_model(2, 4)
    x = holes(LinearModel(2, 4).points(12))
    together = estimate(model, x).log_density
    alone = np.concatenate([estimate(model, x[[row]]).log_density for row in range(12)])
    np.testing.assert_array_equal(together, alone)


def test_integrating_out_a_column_by_quadrature():
    """The density without a column is the integral of the density with it."""
    oracle, model = incomplete_linear_model(1, 2)
    mean, covariance = oracle.distribution.mean, oracle.distribution.cov
    first = mean[0] + 0.5
    middle = mean[1] + covariance[0, 1] / covariance[0, 0] * 0.5
    width = np.sqrt(covariance[1, 1] - covariance[0, 1] ** 2 / covariance[0, 0])
    grid = middle + width * np.linspace(-3.5, 3.5, 71)
    x = np.column_stack([np.full_like(grid, first), grid])
    whole = np.exp(estimate(model, x, tol=0.02).log_density).sum() * (grid[1] - grid[0])
    part = np.exp(estimate(model, [[first, np.nan]], tol=0.01).log_density[0])
    np.testing.assert_allclose(part, whole, rtol=0.03)
