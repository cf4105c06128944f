import warnings

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from roundtrip import Likelihood, Mixture, MixturePrior, Residual, Roundtrip, load
from roundtrip.data import Rows
from roundtrip.density import estimate
from roundtrip.options import fit_options
from roundtrip.parameters import Seeds
from roundtrip.training.data import FittingData
from roundtrip.training.linear_mixture import fit_linear_mixture

CENTRES = np.array([[-3.0, 0.0, 1.0], [3.0, 0.0, -1.0]])
FAST = {"network": Residual(8, 1), "random_state": 0}


def two_groups(rows, seed=0):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(2, size=rows)] + rng.normal(size=(rows, 3)) * [1.0, 0.5, 0.3]


def true_log_density(X):
    cov = np.diag([1.0, 0.25, 0.09])
    parts = [multivariate_normal(centre, cov).logpdf(X) for centre in CENTRES]
    return np.logaddexp(*parts) - np.log(2)


def fitted(X, context=None, **params):
    options = fit_options(Roundtrip(**FAST, **params).get_params(deep=False), rows=len(X), pixels=0)
    x = torch.from_numpy(X)
    rows = Rows.without_context(x) if context is None else Rows(x, context)
    held_out = len(X) // 10
    data = FittingData(
        rows[held_out:],
        rows[:held_out],
        resolution=torch.zeros(X.shape[1]),
        jitter=False,
        log_det=0.0,
    )
    return fit_linear_mixture(
        options, data, data.folds(3), seeds=Seeds.from_random_state(0), seconds=None
    )


def test_two_groups_are_found_and_scored_as_on_new_rows():
    linear = fitted(two_groups(200))
    test = two_groups(2000, seed=1)
    density = estimate(linear.model, test, tol=0.1).log_density
    truth = true_log_density(test).mean()
    assert truth - 0.15 < density.mean() < truth + 0.02
    assert abs(linear.score - density.mean()) < 0.3


@pytest.mark.parametrize(
    ("params", "context", "columns"),
    [
        ({"prior": "normal"}, None, 3),
        ({}, torch.zeros(100, 1, dtype=torch.float64), 3),
        ({}, None, 25),
    ],
    ids=["normal prior", "context", "wide"],
)
def test_other_tables_and_settings_have_no_such_model(params, context, columns):
    X = np.random.default_rng(0).normal(size=(100, columns))
    assert fitted(X, context, **params) is None


@pytest.mark.parametrize("rows", [100, 1000])
def test_no_more_components_than_asked_for(rows):
    linear = fitted(two_groups(rows), prior=MixturePrior(3))
    assert len(linear.model.prior.weights) <= 4  # three and a wide one


def test_ctrl_c_does_not_lose_the_training(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("roundtrip.training.linear_mixture._best_recipe", interrupted)
    assert fitted(two_groups(100)) is None


@pytest.mark.parametrize("rows", [4, 9])
def test_very_few_rows_are_left_to_training(rows):
    with pytest.warns(UserWarning, match="too few"):
        est = Roundtrip(**FAST).fit(two_groups(rows), max_time=4)
    assert np.isfinite(est.transform(two_groups(2))).all()


def circle(rows, seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, rows)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.05 * rng.normal(size=X.shape)


def test_few_rows_on_a_curve_become_kernels(tmp_path):
    X = circle(60, 0)
    # A training that learns nothing, so that the linear model is ahead.
    settings = {"objective": Likelihood(learning_rate=1e-7), "noise": Mixture(box_share=1e-5)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a linear model is no sign of a failed training
        est = Roundtrip(**settings, **FAST).fit(X, validation_data=circle(30, 1))
    assert est.best_epoch_ == 0
    assert len(est.model_.prior.weights) == 61
    test = circle(100, 2)
    gaussian = multivariate_normal(X.mean(axis=0), np.cov(X.T))
    assert est.score_samples(test).mean() > gaussian.logpdf(test).mean() + 0.3
    est.save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    assert np.array_equal(again.score_samples(X[:3]), est.score_samples(X[:3]))


def test_a_given_latent_dimension_is_kept(monkeypatch):
    def not_wanted(*arguments, **settings):
        raise AssertionError("a linear model has as many dimensions as columns")

    monkeypatch.setattr("roundtrip.training.plan.fit_linear_mixture", not_wanted)
    est = Roundtrip(latent_dim=2, **FAST).fit(two_groups(60), max_time=3)
    assert est.latent_dim_ == 2
