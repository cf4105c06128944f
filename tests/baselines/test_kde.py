import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

from roundtrip.baselines import KDE
from roundtrip.baselines.kde import log_kernel_density


def test_kernel_density_far_out_and_near(rng):
    centres, x = rng.normal(size=(300, 4)), 5 * rng.normal(size=(40, 4))
    bandwidths = [0.03, 0.5, 3.0]
    ours = log_kernel_density(torch.from_numpy(x), torch.from_numpy(centres), bandwidths).numpy()
    squares = ((x[:, None] - centres) ** 2).sum(axis=2)
    for column, h in enumerate(bandwidths):
        log_sum = logsumexp(-squares / (2 * h**2), axis=1)
        exact = log_sum - np.log(300) - 4 * np.log(np.sqrt(2 * np.pi) * h)
        np.testing.assert_allclose(ours[:, column], exact, rtol=1e-9)


def test_is_scikit_learns_where_there_are_data(rng):
    X = rng.normal(size=(300, 3))
    est = KDE("scott").fit(X, validation_data=X)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = KernelDensity(bandwidth=est.bandwidth_).fit(scaled).score_samples(scaled)
    np.testing.assert_allclose(est.score_samples(X), theirs - np.log(X.std(axis=0)).sum())


@pytest.mark.parametrize("bandwidth", ["scott", "silverman"])
def test_rules_are_scipys(rng, bandwidth):
    X = rng.normal(size=(200, 3))
    est = KDE(bandwidth).fit(X, validation_data=X)
    theirs = stats.gaussian_kde(X.T, bw_method=bandwidth)
    assert est.bandwidth_ == pytest.approx(theirs.factor)
    assert len(est.history_["bandwidth"]) == 1


def test_density_is_the_mean_of_the_kernels_in_the_users_units(rng):
    X, x = rng.normal(size=(50, 2)) * [10.0, 0.1], rng.normal(size=(7, 2)) * [10.0, 0.1]
    est = KDE("scott").fit(X, validation_data=x)
    kernel = stats.multivariate_normal([0, 0], np.diag((est.bandwidth_ * X.std(axis=0)) ** 2))
    expected = np.log([kernel.pdf(row - X).mean() for row in x])
    np.testing.assert_allclose(est.score_samples(x), expected, rtol=1e-10)
    assert est.validation_log_likelihood_ == pytest.approx(expected.mean())


def test_approaches_an_exact_gaussian(rng):
    X, x = rng.normal(size=(20_000, 1)) * 3 + 1, np.linspace(-5, 7, 20)[:, None]
    exact = stats.norm(1, 3).logpdf(x[:, 0])
    np.testing.assert_allclose(KDE("scott").fit(X).score_samples(x), exact, atol=0.1)


def test_validation_chooses_the_bandwidth(rng):
    # Two narrow peaks far apart: Scott's rule, made for one Gaussian, is much too wide.
    X = rng.choice([-1.0, 1.0], size=(2000, 1)) + 0.01 * rng.normal(size=(2000, 1))
    train, validation, test = X[:1000], X[1000:1500], X[1500:]
    scott = KDE("scott").fit(train, validation_data=validation)
    best = KDE("cv").fit(train, validation_data=validation)
    assert best.bandwidth_ < 0.2 * scott.bandwidth_
    assert best.score(test) > scott.score(test) + 1
    for h, score in zip(*best.history_.values(), strict=True):
        if h == pytest.approx(scott.bandwidth_):
            assert score == pytest.approx(scott.validation_log_likelihood_)


def test_constant_column_and_repeated_rows():
    X = np.repeat([[0.0, 1.0], [1.0, 1.0]], 20, axis=0)
    assert np.isfinite(KDE(random_state=0).fit(X).score_samples(X)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bandwidth": "magic"}, "bandwidth must be one of 'scott', 'silverman', 'cv'"),
        ({"factors": (1.0, 0.0)}, "each of factors must be a number above 0"),
    ],
)
def test_bad_settings(rng, settings, message):
    with pytest.raises(ValueError, match=message):
        KDE(**settings).fit(rng.normal(size=(20, 2)))
