import numpy as np
import torch
from conftest import TINY
from oracles import LinearModel
from scipy.stats import multivariate_normal

from roundtrip import Roundtrip
from roundtrip.density import estimate
from roundtrip.density.surprise import surprise_given_others, surprise_parts
from roundtrip.model.noise import MixtureNoise

ORACLE = LinearModel(2, 4)
ALL = [0, 1, 2, 3]


def log_density(x, features):
    """The exact log density of some of the features."""
    covariance = ORACLE.distribution.cov[np.ix_(features, features)]
    return multivariate_normal(ORACLE.bias[features], covariance).logpdf(x[:, features])


def test_a_feature_that_is_not_seen_is_integrated_out():
    x = ORACLE.points(30)
    model = ORACLE.model.without(torch.tensor([False, False, True, False]))
    result = estimate(model, x, tol=0.02)
    assert result.converged.all()
    assert np.abs(result.log_density - log_density(x, [0, 1, 3])).max() < 4 * 0.02


def test_surprise_of_a_feature_given_the_others_is_exact():
    x = ORACLE.points(20)
    x[::2, 1] += 5.0
    surprise = surprise_given_others(
        ORACLE.model,
        torch.from_numpy(x),
        torch.from_numpy(ORACLE.bias),
        tol=0.02,
        seed=0,
        verbose=False,
    ).numpy()
    for feature in ALL:
        others = [other for other in ALL if other != feature]
        exact = log_density(x, others) - log_density(x, ALL)
        assert np.abs(surprise[:, feature] - exact).max() < 6 * 0.02
    assert (surprise[::2].argmax(axis=1) == 1).all()


def test_parts_of_the_surprise_add_up_and_are_exact():
    x = ORACLE.points(20)
    parts = surprise_parts(ORACLE.model, torch.from_numpy(x), tol=0.02, seed=0)
    assert np.abs(parts.total.numpy() + log_density(x, ALL)).max() < 0.1
    precision = np.eye(2) + ORACLE.weight.T @ ORACLE.weight / ORACLE.sigma**2
    covariance = np.linalg.inv(precision)
    mean = (x - ORACLE.bias) @ ORACLE.weight @ covariance / ORACLE.sigma**2
    constant = np.trace(covariance) - 2 - np.linalg.slogdet(covariance)[1]
    divergence = 0.5 * (constant + (mean**2).sum(axis=1))
    assert np.abs(parts.latent.numpy() - divergence).max() < 0.2


def test_without_all_features_nothing_is_left_to_be_unlikely(rng):
    """Also for the default's mixture noise and posterior, which the linear oracle has not."""
    X = rng.normal(size=(200, 3))
    est = Roundtrip(latent_dim=2, **TINY).fit(X)
    assert isinstance(est.model_.noise, MixtureNoise)
    assert est.model_.has_posterior
    model = est.model_.without(torch.ones(3, dtype=torch.bool))
    result = estimate(model, X[:10], tol=0.02)
    assert result.converged.all()
    assert np.abs(result.log_density).max() < 4 * 0.02
