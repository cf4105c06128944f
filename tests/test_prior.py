"""A prior of z that is fitted to where the encoder puts the data."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from roundtrip import Roundtrip, load
from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import ResidualMLP
from roundtrip.model.prior import MixturePrior
from roundtrip.training.aggregate import fit_prior
from roundtrip.training.run import FittingData

WEIGHTS = np.array([0.3, 0.7])
MEANS = np.array([[-2.0, 0.0], [1.0, 1.0]])
COVARIANCES = np.array([[[0.2, 0.1], [0.1, 0.3]], [[0.5, 0.0], [0.0, 0.1]]])


@pytest.fixture
def prior():
    return MixturePrior(
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
    identity = torch.nn.Linear(2, 2)
    model = RoundtripModel(identity, identity, 2, sigma=0.5, prior=prior if learnt else None)
    mean, covariance = moments() if learnt else (np.zeros(2), np.eye(2))
    state = torch.get_rng_state()
    for seed in range(5):
        codes = model.spread_codes(4096, seed).numpy()  # draws would err by 0.016 and more
        np.testing.assert_allclose(codes.mean(axis=0), mean, atol=0.003)
        np.testing.assert_allclose(np.cov(codes.T), covariance, atol=0.01)
    again = model.spread_codes(4096, seed).numpy()
    np.testing.assert_array_equal(again, codes)
    assert not np.array_equal(model.spread_codes(4096, seed + 1).numpy(), codes)
    assert torch.equal(torch.get_rng_state(), state)


def test_spread_codes_are_finite_on_the_faces_of_the_cube():
    """Of this many points in so many dimensions one lies on a face, which is at infinity."""
    model = RoundtripModel(torch.nn.Linear(400, 1), torch.nn.Linear(1, 400), 400, sigma=0.5)
    codes = model.spread_codes(4096, 441)
    assert 6 < codes.abs().max() < 7


def test_density_under_a_mixture_is_that_of_a_mixture(prior):
    """x = z + noise: p(x) is the prior's mixture, each component wider by the noise."""
    identity = torch.nn.Linear(2, 2)
    torch.nn.init.eye_(identity.weight)
    torch.nn.init.zeros_(identity.bias)
    model = RoundtripModel(identity, identity, 2, sigma=0.5, prior=prior)
    from roundtrip.density import estimate

    x = np.random.default_rng(0).normal(size=(30, 2))
    result = estimate(model, x, tol=0.02)
    parts = zip(WEIGHTS, MEANS, COVARIANCES + 0.25 * np.eye(2), strict=True)
    truth = np.log(sum(w * multivariate_normal(m, c).pdf(x) for w, m, c in parts))
    assert result.converged.all()
    assert np.abs(result.log_density - truth).max() < 4 * 0.02
    with pytest.raises(ValueError, match="prior='normal'"):
        estimate(model, x, method="laplace")


def encoder_to_two_places(dim=1):
    """An encoder whose codes are the first feature, nearly without doubt."""
    generator = torch.Generator().manual_seed(0)
    H = ResidualMLP(2, 2, width=4, blocks=1, linear_outputs=2, generator=generator)
    with torch.no_grad():
        H.direct.zero_()
        H.direct[0, 0] = 1.0
        H.last.bias[1] = -5.0
    return RoundtripModel(torch.nn.Linear(dim, 2), H, dim, sigma=0.5, has_posterior=True)


def test_prior_goes_where_the_codes_are(rng):
    rows = np.column_stack([rng.choice([-1.5, 1.5], size=2000), rng.normal(size=2000)])
    rows[:, 0] += 0.2 * rng.normal(size=2000)
    x = torch.from_numpy(rows).float()
    prior, gain = fit_prior(encoder_to_two_places(), x[:1500], x[1500:], seed=0)
    assert gain > 0.5
    density = prior.log_prob(torch.tensor([[-1.5], [0.0], [1.5]])).exp()
    assert density[0] > 10 * density[1]
    assert density[2] > 10 * density[1]
    assert prior.log_prob(torch.tensor([[30.0]])) > -0.5 * 900 - 6  # N(0, I) far from all codes


def test_normal_codes_keep_the_normal_prior_and_few_rows_do_too(rng):
    x = torch.from_numpy(rng.normal(size=(300, 2))).float()
    model = encoder_to_two_places()
    assert fit_prior(model, x[:10], x[100:], seed=0) == (None, 0.0)
    prior, gain = fit_prior(model, x[:200], x[200:], seed=0)
    assert prior is None or gain < 0.05
    assert fit_prior(model, x[:200] * math.nan, x, seed=0) == (None, 0.0)


def test_moments_are_those_of_the_draws(prior):
    draws = prior.sample(40_000, np.random.RandomState(1)).numpy()
    mean, factor = prior.moments()
    np.testing.assert_allclose(mean, draws.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(factor @ factor.mT, np.cov(draws.T), atol=0.05)


def test_a_fitted_prior_is_kept_left_out_and_refused(rng, tmp_path):
    X = np.concatenate([rng.normal(size=(600, 2)) * 0.1 + c for c in (-3, 0, 3)])
    settings = {"max_epochs": 2, "min_steps_per_epoch": 20, "random_state": 0}
    est = Roundtrip(**settings).fit(X)
    assert est.model_.prior is not None
    assert est.prior_gain_ > 0
    est.save(tmp_path / "m.rt")
    again = load(tmp_path / "m.rt")
    np.testing.assert_array_equal(again.score_samples(X[:5]), est.score_samples(X[:5]))
    np.testing.assert_array_equal(again.sample(5, 0), est.sample(5, 0))
    assert again.prior_gain_ == est.prior_gain_
    est.set_params(warm_start=True).fit(X)
    assert np.isfinite(est.score(X[:20]))
    normal = Roundtrip(prior="normal", **settings).fit(X)
    assert normal.model_.prior is None
    assert normal.prior_gain_ == 0
    with pytest.raises(ValueError, match="prior must be 'normal'"):
        Roundtrip(objective="adversarial", prior="mixture").fit(X)
    with pytest.raises(ValueError, match="prior"):
        Roundtrip(prior="flat").fit(X)


def test_prior_holds_given_a_context(prior):
    """Of a conditional model, too: p(z) is the same for every context."""
    generator, encoder = torch.nn.Linear(2 + 1, 2), torch.nn.Linear(2 + 1, 2)
    model = RoundtripModel(generator, encoder, 2, sigma=0.5, context_dim=1, prior=prior)
    z = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    given = model.given(torch.ones(1))
    torch.testing.assert_close(given.log_prior(z), prior.log_prob(z))
    torch.testing.assert_close(model.with_sigma(0.1).log_prior(z), prior.log_prob(z))


def test_rows_for_the_prior_are_drawn_from_the_whole_table():
    """A table may be sorted: its first rows would show only a part of the codes."""
    rows = torch.arange(1000.0, dtype=torch.float64)[:, None]
    data = FittingData(rows, rows[:10], torch.zeros(1), jitter=False, log_det=0.0)
    some, _ = data.as_trained(100, seed=0)
    assert some.shape == (100, 1)
    assert some.min() < 100
    assert some.max() > 900
