"""What every baseline promises."""

import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from roundtrip.baselines import (
    BASELINES,
    KDE,
    MADE,
    MAF,
    NSF,
    GaussianMixtureBaseline,
    RealNVP,
)
from roundtrip.baselines.flows import FlowBaseline

SMALL = {"hidden": (32, 32), "max_epochs": 10, "random_state": 0}
TINY = {"hidden": (8, 8), "max_epochs": 1, "random_state": 0}

CONSTRUCTORS = {
    "kde": lambda **_: KDE(random_state=0),
    "mixture": lambda **_: GaussianMixtureBaseline((1, 2, 8), random_state=0),
    "made": lambda **settings: MADE(**settings),
    "realnvp": lambda **settings: RealNVP(transforms=4, **settings),
    "maf": lambda **settings: MAF(transforms=3, **settings),
    "nsf": lambda **settings: NSF(transforms=2, **settings),
    "nsf-as-published": lambda **settings: NSF(transforms=2, affine=False, **settings),
}
each = pytest.mark.parametrize("name", CONSTRUCTORS)


def bends(rows, seed):
    """Two bent clouds, one above the other, with columns of different widths far from zero."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], size=rows)
    t = rng.normal(size=rows)
    x = np.stack([t + 0.5 * side, 0.7 * t**2 + 0.8 * side], axis=1)
    return (x + 0.3 * rng.normal(size=x.shape)) * [3.0, 0.1] + [50.0, -2.0]


@pytest.fixture(scope="module")
def fitted():
    """Small fits that nobody may change."""
    X, validation = bends(1500, seed=0), bends(300, seed=1)
    return {
        name: make(**SMALL).fit(X, validation_data=validation)
        for name, make in CONSTRUCTORS.items()
    }


def grid_density(est, *, points=200, reach=7.0):
    """Log densities on a grid around the bends, and the area of one of its cells."""
    axes = [np.linspace(c - reach * s, c + reach * s, points) for c, s in ((50, 3.5), (-1.5, 0.14))]
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    rows = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    return est.score_samples(rows), cell


@each
def test_density_integrates_to_one_and_samples_have_its_entropy(fitted, name):
    log_density, cell = grid_density(fitted[name])
    assert np.exp(log_density).sum() * cell == pytest.approx(1, abs=0.02)
    # The mean log density of its own draws is minus the entropy, which the grid gives, too.
    scores = fitted[name].score_samples(fitted[name].sample(4000, random_state=0))
    expected = (np.exp(log_density) * log_density).sum() * cell
    error = scores.std() / np.sqrt(len(scores))
    assert scores.mean() == pytest.approx(expected, abs=4 * error + 0.02)


@each
def test_samples_resemble_the_data(fitted, name):
    data, sample = bends(4000, seed=2), fitted[name].sample(4000, random_state=0)
    assert sample.shape == (4000, 2)
    width = data.std(axis=0)
    np.testing.assert_allclose(sample.mean(axis=0) / width, data.mean(axis=0) / width, atol=0.25)
    np.testing.assert_allclose(sample.std(axis=0) / width, 1, atol=0.25)


@each
def test_learns_more_than_one_gaussian(fitted, name):
    test = bends(1000, seed=3)
    gaussian = GaussianMixtureBaseline((1,), random_state=0).fit(bends(1500, seed=0))
    assert fitted[name].score(test) > gaussian.score(test) + 0.05


@each
def test_records(fitted, name):
    est = fitted[name]
    scores = est.history_["validation_log_likelihood"]
    assert est.validation_log_likelihood_ == max(scores)
    assert est.score(bends(300, seed=1)) == pytest.approx(max(scores), abs=1e-5)
    for values in est.history_.values():
        assert len(values) == len(scores)
    if "seconds" in est.history_:
        assert est.history_["seconds"] == sorted(est.history_["seconds"])


@each
def test_a_rows_value_depends_on_the_row_alone(fitted, name):
    X = bends(50, seed=4)
    scores = fitted[name].score_samples(X)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(fitted[name].score_samples(X[7:8]), scores[7:8], rtol=1e-12)
    assert fitted[name].score(X) == scores.mean()


@each
def test_other_units_shift_the_log_density_by_log_det(name):
    X, factors = bends(300, seed=0), np.array([1024.0, 0.125])  # powers of two: exact
    before = CONSTRUCTORS[name](**TINY).fit(X)
    after = CONSTRUCTORS[name](**TINY).fit(X * factors)
    shift = np.log(factors).sum()
    np.testing.assert_allclose(
        after.score_samples(X * factors), before.score_samples(X) - shift, atol=1e-9
    )
    assert after.validation_log_likelihood_ == pytest.approx(
        before.validation_log_likelihood_ - shift
    )
    np.testing.assert_allclose(
        after.sample(5, random_state=1), before.sample(5, random_state=1) * factors
    )


@each
def test_same_seed_same_fit_and_global_random_state_untouched(name):
    X = bends(300, seed=0)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    first, second = (CONSTRUCTORS[name](**TINY).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.score_samples(X), second.score_samples(X))
    np.testing.assert_array_equal(first.sample(5, random_state=3), second.sample(5, random_state=3))
    assert not np.array_equal(first.sample(5), first.sample(5))
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)


@pytest.mark.parametrize("name", BASELINES)
def test_max_time_is_kept(name, rng):
    X = rng.normal(size=(8000, 6))
    BASELINES[name](random_state=0).fit(X[:100], max_time=0.1)  # imports packages
    start = time.perf_counter()
    est = BASELINES[name](random_state=0).fit(X, max_time=1.0)
    assert time.perf_counter() - start < 1.8  # a loaded machine is granted some
    if isinstance(est, FlowBaseline):
        seconds = est.history_["seconds"]
        assert seconds[-1] > 0.7  # and used

        def decayed(elapsed):
            return est.learning_rate * 0.5 * (1 + np.cos(np.pi * min(elapsed, 1.0)))

        # The decay followed the clock: the rate of an epoch's last step is one of its duration.
        for rate, begun, ended in zip(
            est.history_["learning_rate"], [0.0, *seconds], seconds, strict=False
        ):
            assert decayed(ended) <= rate <= decayed(begun)
    assert np.isfinite(est.score(X[:100]))


@each
def test_without_validation_data_a_tenth_is_held_out(name):
    est = CONSTRUCTORS[name](**TINY).fit(bends(100, seed=0))
    assert np.isfinite(est.validation_log_likelihood_)
    if name == "kde":
        assert est.centres_.shape == (90, 2)
        assert est.fit(bends(100, seed=0), validation_data=bends(5, seed=1)).centres_.shape == (
            100,
            2,
        )


@each
def test_dataframes(name):
    table = pd.DataFrame(bends(100, seed=0), columns=["width", "height"])
    est = CONSTRUCTORS[name](**TINY).fit(table)
    assert list(est.sample(3).columns) == ["width", "height"]
    assert est.score_samples(table).shape == (100,)
    with pytest.raises(ValueError, match="feature names"):
        est.score_samples(table.rename(columns={"width": "depth"}))


@each
def test_clone(name):
    est = CONSTRUCTORS[name](**TINY)
    copy = clone(est)
    assert copy.get_params() == est.get_params()
    with pytest.raises(NotFittedError):
        copy.score_samples(bends(3, seed=0))
    with pytest.raises(NotFittedError):
        copy.sample()


@each
def test_one_column(name, rng):
    est = CONSTRUCTORS[name](**TINY).fit(rng.normal(size=(200, 1)))
    x = np.linspace(-30, 30, 6001)[:, None]
    assert np.exp(est.score_samples(x)).sum() * 0.01 == pytest.approx(1, abs=0.02)
    assert est.sample(3).shape == (3, 1)


@each
def test_bad_input(fitted, name):
    make, X = CONSTRUCTORS[name], bends(50, seed=0)
    hole = X.copy()
    hole[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make(**TINY).fit(hole)
    with pytest.raises(ValueError, match=r"validation_data.*NaN"):
        make(**TINY).fit(X, validation_data=hole)
    with pytest.raises(ValueError, match=r"validation_data.*3 features"):
        make(**TINY).fit(X, validation_data=np.ones((5, 3)))
    with pytest.raises(ValueError, match="minimum of 2"):
        make(**TINY).fit(X[:1])
    with pytest.raises(ValueError, match="max_time must be a number above 0, got 0"):
        make(**TINY).fit(X, max_time=0)
    with pytest.raises(ValueError, match="2D array"):
        fitted[name].score_samples(X[0])
    with pytest.raises(ValueError, match="3 features"):
        fitted[name].score_samples(np.ones((5, 3)))
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1, got 0"):
        fitted[name].sample(0)


@parametrize_with_checks(
    [KDE(), GaussianMixtureBaseline((1, 2)), RealNVP(hidden=(8,), transforms=2, max_epochs=1)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("odd", [["a", "b", "a"], [1.0, None, 2.0], pd.to_datetime(["2024"] * 3)])
def test_columns_that_baselines_cannot_take_are_named(odd):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "odd": odd})
    with pytest.raises(ValueError, match=r"in columns odd; first in row [01]"):
        KDE().fit(frame)


def test_tables_of_polars_give_samples_of_polars(rng):
    table = pl.DataFrame({"a": rng.normal(size=50), "b": rng.integers(9, size=50)})
    kde = KDE(random_state=0).fit(table)
    assert kde.score_samples(table).shape == (50,)
    assert kde.sample(3).columns == ["a", "b"]
    assert isinstance(kde.sample(3), pl.DataFrame)
