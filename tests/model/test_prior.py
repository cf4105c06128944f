"""Distributions of z."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from roundtrip.density import estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.model.prior import GaussianMixture, StandardNormal

WEIGHTS = np.array([0.3, 0.7])
MEANS = np.array([[-2.0, 0.0], [1.0, 1.0]])
COVARIANCES = np.array([[[0.2, 0.1], [0.1, 0.3]], [[0.5, 0.0], [0.0, 0.1]]])


@pytest.fixture
def prior():
    return GaussianMixture(
        *(torch.from_numpy(part) for part in (WEIGHTS, MEANS, np.linalg.cholesky(COVARIANCES)))
    )


def exact(z):
    parts = zip(WEIGHTS, MEANS, COVARIANCES, strict=True)
    return np.log(sum(w * multivariate_normal(m, c).pdf(z) for w, m, c in parts))


def test_density_of_the_mixture_is_exact(prior, rng):
    z = rng.normal(size=(4, 5, 2))
    np.testing.assert_allclose(prior.log_prob(torch.from_numpy(z)).numpy(), exact(z), atol=1e-10)


def moments():
    """Mean and covariance of the whole mixture."""
    mean = WEIGHTS @ MEANS
    parts = zip(WEIGHTS, MEANS, COVARIANCES, strict=True)
    return mean, sum(w * (c + np.outer(m - mean, m - mean)) for w, m, c in parts)


def test_draws_follow_the_mixture(prior):
    draws = prior.sample(40_000, np.random.RandomState(0)).numpy()
    mean, covariance = moments()
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05)


@pytest.mark.parametrize("learnt", [False, True])
def test_spread_codes_have_the_moments_of_the_prior_much_closer_than_draws(prior, learnt):
    distribution = prior if learnt else StandardNormal(2)
    mean, covariance = moments() if learnt else (np.zeros(2), np.eye(2))
    state = torch.get_rng_state()
    for seed in range(5):
        codes = distribution.spread(4096, seed).numpy()  # draws would err by 0.016 and more
        np.testing.assert_allclose(codes.mean(axis=0), mean, atol=0.003)
        np.testing.assert_allclose(np.cov(codes.T), covariance, atol=0.01)
    again = distribution.spread(4096, seed).numpy()
    np.testing.assert_array_equal(again, codes)
    assert not np.array_equal(distribution.spread(4096, seed + 1).numpy(), codes)
    assert torch.equal(torch.get_rng_state(), state)


def test_spread_codes_are_finite_on_the_faces_of_the_cube():
    """Of this many points in so many dimensions one lies on a face, which is at infinity."""
    codes = StandardNormal(400).spread(4096, 441)
    assert 6 < codes.abs().max() < 7


def test_density_under_a_mixture_is_that_of_a_mixture(prior):
    """x = z + noise: p(x) is the prior's mixture, each component wider by the noise."""
    identity = torch.nn.Linear(2, 2)
    torch.nn.init.eye_(identity.weight)
    torch.nn.init.zeros_(identity.bias)
    model = RoundtripModel(identity, identity, 2, sigma=0.5, prior=prior)
    x = np.random.default_rng(0).normal(size=(30, 2))
    result = estimate(model, x, tol=0.02)
    parts = zip(WEIGHTS, MEANS, COVARIANCES + 0.25 * np.eye(2), strict=True)
    truth = np.log(sum(w * multivariate_normal(m, c).pdf(x) for w, m, c in parts))
    assert result.converged.all()
    assert np.abs(result.log_density - truth).max() < 4 * 0.02
    with pytest.raises(ValueError, match="prior='normal'"):
        estimate(model, x, method="laplace")


def test_moments_are_those_of_the_draws(prior):
    draws = prior.sample(40_000, np.random.RandomState(1)).numpy()
    mean, factor = prior.moments()
    np.testing.assert_allclose(mean, draws.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(factor @ factor.mT, np.cov(draws.T), atol=0.05)


def test_prior_holds_given_a_context(prior):
    """Of a conditional model, too: p(z) is the same for every context."""
    generator, encoder = torch.nn.Linear(2 + 1, 2), torch.nn.Linear(2 + 1, 2)
    model = RoundtripModel(generator, encoder, 2, sigma=0.5, context_dim=1, prior=prior)
    z = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    given = model.given(torch.ones(1))
    torch.testing.assert_close(given.prior.log_prob(z), prior.log_prob(z))
    torch.testing.assert_close(model.with_sigma(0.1).prior.log_prob(z), prior.log_prob(z))
