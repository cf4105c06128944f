"""Distributions of z."""

import numpy as np
import pytest
import torch
from scipy.stats import laplace, multivariate_normal, norm

from roundtrip.density import estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.model.prior import (
    GaussianMixture,
    LatentDistribution,
    MixturePrior,
    NormalPrior,
    StandardNormal,
)

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


class Laplace(LatentDistribution):
    """Independent Laplace coordinates of scale 0.5: only what a subclass must implement."""

    def log_prob(self, z):
        return -2 * z.double().abs().sum(-1)

    def sample(self, n_samples, rng):
        return torch.from_numpy(rng.laplace(scale=0.5, size=(n_samples, self.latent_dim)))


@pytest.fixture(params=["normal", "mixture", "own"])
def distribution(request, prior):
    return {"normal": StandardNormal(2), "mixture": prior, "own": Laplace(2)}[request.param]


def exact_moments(distribution):
    if isinstance(distribution, GaussianMixture):
        return moments()
    return np.zeros(2), np.eye(2) * (0.5 if isinstance(distribution, Laplace) else 1.0)


def test_density_integrates_to_one(distribution):
    axis = torch.linspace(-8, 8, 801, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), dim=-1)
    total = distribution.log_prob(grid).exp().sum() * (axis[1] - axis[0]) ** 2
    assert total == pytest.approx(1.0, abs=1e-3)


def test_moments_are_those_of_the_closed_form(distribution):
    mean, factor = distribution.moments()
    exact_mean, covariance = exact_moments(distribution)
    # What does not know its moments takes them from 4,096 draws.
    error = 0.06 if isinstance(distribution, Laplace) else 1e-12
    np.testing.assert_allclose(mean, exact_mean, atol=error)
    np.testing.assert_allclose(factor @ factor.mT, covariance, atol=error)
    torch.testing.assert_close(factor, factor.tril())
    assert mean.dtype == factor.dtype == torch.float64
    torch.testing.assert_close(distribution.moments(), (mean, factor), rtol=0, atol=0)


def test_one_latent_dimension_has_moments():
    mean, factor = Laplace(1).moments()
    assert mean.shape == (1,)
    assert factor.item() == pytest.approx(0.5**0.5, abs=0.05)


def test_spread_follows_the_seed_and_the_distribution(distribution):
    codes = distribution.spread(4096, 2**40)  # seeds may be larger than NumPy's
    mean, covariance = exact_moments(distribution)
    np.testing.assert_allclose(codes.mean(dim=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(codes.T), covariance, atol=0.07)
    assert codes.dtype == torch.float64
    torch.testing.assert_close(distribution.spread(4096, 2**40), codes, rtol=0, atol=0)
    assert not torch.equal(distribution.spread(4096, 2**40 + 1), codes)


def test_draws_in_training_are_like_the_codes(distribution):
    codes = torch.empty(20_000, 2)
    global_state = torch.get_rng_state()
    first, again = (
        distribution.draw_like(codes, torch.Generator().manual_seed(0)) for _ in range(2)
    )
    assert (first.shape, first.dtype, first.device) == (codes.shape, codes.dtype, codes.device)
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    rng = torch.Generator().manual_seed(0)
    distribution.draw_like(codes, rng)
    assert not torch.equal(distribution.draw_like(codes, rng), first)
    mean, covariance = exact_moments(distribution)
    np.testing.assert_allclose(first.mean(dim=0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(first.T), covariance, atol=0.05)
    assert torch.equal(torch.get_rng_state(), global_state)


def test_kernel_is_the_density_up_to_the_constant_of_a_normal(distribution, rng):
    z = torch.from_numpy(rng.normal(size=(3, 4, 2))).float().requires_grad_()
    kernel = distribution.log_kernel(z)
    expected = distribution.log_prob(z) + np.log(2 * np.pi)
    torch.testing.assert_close(kernel.double(), expected, rtol=1e-5, atol=1e-5)
    assert kernel.dtype == torch.float32
    slopes = [torch.autograd.grad(value.sum(), z)[0] for value in (kernel, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-5)


def test_density_under_an_own_prior_is_exact():
    """x = z + noise: p(x) is the convolution of a Laplace and a normal density."""
    identity = torch.nn.Linear(2, 2)
    torch.nn.init.eye_(identity.weight)
    torch.nn.init.zeros_(identity.bias)
    model = RoundtripModel(identity, identity, 2, sigma=0.5, prior=Laplace(2))
    x = np.random.default_rng(0).normal(size=(20, 2))
    axis = np.linspace(-8, 8, 16_001)
    step = axis[1] - axis[0]
    each = norm.pdf(x[..., None], axis, 0.5) @ laplace.pdf(axis, scale=0.5) * step
    result = estimate(model, x, tol=0.02)
    assert result.converged.all()
    assert np.abs(result.log_density - np.log(each).sum(axis=1)).max() < 4 * 0.02
    with pytest.raises(ValueError, match="prior='normal'"):
        estimate(model, x, method="laplace")


def test_only_the_normal_distribution_is_standard_normal(prior):
    assert StandardNormal(2).is_standard_normal
    assert not prior.is_standard_normal
    assert not Laplace(2).is_standard_normal


def test_a_distribution_must_have_a_density_and_draws():
    class Half(LatentDistribution):
        def log_prob(self, z):
            return z.sum(-1)

    with pytest.raises(TypeError, match="sample"):
        Half(2)


def test_components_build_and_restore(prior):
    assert NormalPrior().build(3).is_standard_normal
    assert MixturePrior().build(3).is_standard_normal  # until training has ended
    restored = MixturePrior().restored(2, prior.state_dict())
    z = torch.zeros(1, 2)
    torch.testing.assert_close(restored.log_prob(z), prior.log_prob(z))
    assert MixturePrior().restored(2, {}).is_standard_normal
    with pytest.raises(ValueError, match="components must be an integer of at least 1, got 0"):
        MixturePrior(components=0).check()
