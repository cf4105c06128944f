import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from roundtrip.baselines import GaussianMixtureBaseline
from roundtrip.baselines.mixture import STEPS_PER_CALL


@pytest.fixture
def clusters(rng):
    """Four round clusters at the corners of a square, in two very different units."""
    corners = rng.choice([-1.0, 1.0], size=(1200, 2))
    return (corners + 0.2 * rng.normal(size=corners.shape)) * [100.0, 0.01]


def test_is_scikit_learns_mixture(clusters):
    est = GaussianMixtureBaseline(7, random_state=0).fit(
        clusters[:1000], validation_data=clusters[1000:]
    )
    # One uninterrupted fit: ours looks at the clock in between.
    whole = clone(est.mixture_).set_params(warm_start=False, max_iter=200)
    shift, scale = clusters[:1000].mean(axis=0), clusters[:1000].std(axis=0)
    whole.fit((clusters[:1000] - shift) / scale)
    np.testing.assert_allclose(
        est.score_samples(clusters),
        whole.score_samples((clusters - shift) / scale) - np.log(scale).sum(),
        rtol=1e-9,
    )
    assert est.n_iter_ == whole.n_iter_ > STEPS_PER_CALL


def test_one_component_is_the_gaussian_of_the_moments(rng):
    X = rng.multivariate_normal([1.0, 2.0], [[2.0, 0.9], [0.9, 1.0]], size=500)
    est = GaussianMixtureBaseline((1,)).fit(X, validation_data=X)
    exact = stats.multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(est.score_samples(X), exact.logpdf(X), atol=1e-4)


def test_validation_chooses_the_number_of_components(clusters):
    est = GaussianMixtureBaseline((1, 4, 200), random_state=0).fit(clusters)
    assert est.n_components_ == 4
    assert est.history_["n_components"] == [1, 4, 200]


def test_time_limits_the_numbers_tried(rng):
    X = rng.normal(size=(4000, 4))
    est = GaussianMixtureBaseline((1, 64, 128), random_state=0).fit(X, max_time=1e-3)
    assert est.history_["n_components"] == [1]


def test_samples_come_in_no_order(clusters):
    est = GaussianMixtureBaseline((4,), random_state=0).fit(clusters)
    left = est.sample(400, random_state=0)[:, 0] < 0
    assert 0.3 < left[:200].mean() < 0.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": ()}, "each of n_components must be an integer of at least 1"),
        ({"n_components": 2.5}, "each of n_components must be an integer of at least 1"),
        ({"n_components": (1, 0)}, "each of n_components must be an integer of at least 1"),
        ({"n_components": (64,)}, "above the number of training rows, 18"),
        ({"covariance_type": "round"}, "covariance_type must be one of"),
        ({"reg_covar": -1.0}, "reg_covar must be a number above 0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
    ],
)
def test_bad_settings(rng, settings, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixtureBaseline(**settings).fit(rng.normal(size=(20, 2)))
