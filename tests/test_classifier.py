"""p(y | x) by Bayes' rule, against exact values."""

from copy import copy
from dataclasses import replace
from datetime import date
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from three_classes import SHARES, SMALL, TINY, TINY_ADVERSARIAL, three_gaussians, true_log_density

from roundtrip import Isotropic, Likelihood, Residual, Roundtrip, RoundtripClassifier, load
from roundtrip.density import FittedDensity, prepared
from roundtrip.density.part_encoder import fit_part_encoder

CHEAP = {
    "objective": Likelihood(batch_size=64, min_steps_per_epoch=30),
    "noise": Isotropic(sigma=1.0),
    "network": Residual(16, 1),
    "prior": "normal",
    "max_epochs": 1,
    "tol": 1.0,
    "random_state": 0,
}
"""Wide noise and a loose tolerance: posteriors take a fraction of a second."""


@pytest.fixture(scope="module")
def classifier():
    X, y = three_gaussians(4000, seed=0)
    return RoundtripClassifier(Roundtrip(**SMALL), random_state=0).fit(X, y)


def test_posterior_is_bayes_rule(classifier):
    X, _ = three_gaussians(300, seed=1)
    joint = np.exp(true_log_density(X)) * SHARES
    truth = joint / joint.sum(axis=1, keepdims=True)
    result = classifier.posterior(X)
    np.testing.assert_allclose(result.probability.sum(axis=1), 1)
    assert np.abs(result.probability - truth).mean() < 0.02
    assert result.converged.mean() > 0.9
    assert (result.probability.argmax(axis=1) == truth.argmax(axis=1)).mean() > 0.97
    np.testing.assert_array_equal(
        classifier.predict(X[:20]), result.probability[:20].argmax(axis=1)
    )
    np.testing.assert_allclose(
        np.exp(classifier.predict_log_proba(X[:20])), result.probability[:20], atol=1e-12
    )


def test_error_bars_of_posteriors_cover_other_draws(classifier):
    """Scores with other random draws scatter as the error bars say."""
    X, _ = three_gaussians(500, seed=2)
    truth = np.exp(true_log_density(X)) * SHARES
    X = X[(truth / truth.sum(axis=1, keepdims=True)).max(axis=1) < 0.99]
    first = classifier.posterior(X)
    other = clone(classifier).set_params()
    other.__dict__.update(classifier.__dict__)
    other.estimator_ = _with_seed(classifier.estimator_, 12345)
    second = other.posterior(X)
    unsure = (first.probability > 0.02) & (first.probability < 0.98)
    error = np.hypot(first.std_error, second.std_error)[unsure]
    z = (first.probability - second.probability)[unsure] / error
    assert unsure.sum() > 100
    assert 0.75 < z.std() < 1.3


def _with_seed(est, seed):
    other = clone(est)
    other.__dict__.update(est.__dict__)
    other.fitted_ = FittedDensity(est.model_, est.schema_, seed)
    return other


def test_priors_may_change_after_fitting(classifier):
    X, _ = three_gaussians(50, seed=3)
    before = classifier.predict_proba(X)
    try:
        classifier.set_params(priors=[0.0, 0.0, 1.0])
        assert (classifier.predict(X) == 2).all()
        classifier.set_params(priors="uniform")
        ratio = classifier.predict_proba(X) / before
        counts = classifier.class_count_
        expected = ratio[:, :1] * (counts[0] / counts)
        near = (before > 0.01) & (before[:, :1] > 0.01)
        assert near.sum() > 20
        np.testing.assert_allclose(
            ratio[near], np.broadcast_to(expected, ratio.shape)[near], rtol=1e-6
        )
        for priors in ([0.5, 0.5], [0.5, 0.2, 0.2], [1.5, -0.5, 0.0], "fair"):
            with pytest.raises(ValueError, match="priors"):
                classifier.set_params(priors=priors).predict(X)
    finally:
        classifier.set_params(priors=None)


def test_wrong_priors_are_refused_before_the_fit(monkeypatch):
    monkeypatch.setattr(Roundtrip, "fit", lambda *_, **__: pytest.fail("is fitted"))
    X, y = three_gaussians(50, seed=0)
    with pytest.raises(ValueError, match="priors must sum to 1"):
        RoundtripClassifier(priors=[0.5, 0.2, 0.2]).fit(X, y)


@pytest.mark.parametrize("settings", [TINY, TINY_ADVERSARIAL], ids=["likelihood", "adversarial"])
def test_posterior_follows_from_the_densities(settings):
    X, y = three_gaussians(300, seed=0)
    est = Roundtrip(random_state=0, **settings).fit(X, context=y)
    result = RoundtripClassifier.from_density(est).posterior(X[:20])
    joint = np.stack([est.score_samples(X[:20], context=label) for label in range(3)], axis=1)
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(result.probability, expected, atol=1e-4)


def test_without_a_rough_density_every_class_is_estimated_whatever_its_prior():
    X, y = three_gaussians(300, seed=0)
    est = Roundtrip(random_state=0, **TINY_ADVERSARIAL).fit(X, context=y)
    rare = 1e-9
    classifier = RoundtripClassifier.from_density(est, priors=[rare, 0.0, 1 - rare])
    result = classifier.posterior(X[:5])
    np.testing.assert_array_equal(result.probability[:, 1], 0)
    assert np.isfinite(result.log_density_error[:, [0, 2]]).all()
    assert np.isnan(result.log_density[:, 1]).all()
    np.testing.assert_array_equal(classifier.predict_log_proba(X[:5])[:, 1], -np.inf)


@pytest.mark.parametrize("in_fit", [False, True], ids=["only scored", "fitted"])
def test_rows_with_missing_cells_are_classified_by_what_is_observed(in_fit, monkeypatch):
    """The classes differ in mean, so that one column alone tells less than both."""
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=40))
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2_000)
    whole = rng.normal(size=(2_000, 2)) + 2.0 * y[:, None]
    X = whole.copy()
    X[::3, 0] = np.nan
    density = Roundtrip(latent_dim=2, **(CHEAP | {"max_epochs": 4, "tol": 0.1}))
    classifier = RoundtripClassifier(density).fit(X if in_fit else whole, y)
    rows = np.array([[np.nan, value] for value in (-1.0, 0.5, 1.0, 1.5, 3.0)])
    result = classifier.posterior(rows)
    expected = 1 / (1 + np.exp(2.0 - 2.0 * rows[:, 1]))
    np.testing.assert_allclose(result.probability[:, 1], expected, atol=0.15)
    assert result.converged.all()
    both = classifier.predict_proba(np.array([[2.0, 1.0], [0.0, 1.0]]))[:, 1]
    assert both[0] > 0.65
    assert both[1] < 0.35


def test_columns_of_a_classified_table_go_by_name():
    X, y = three_gaussians(200, seed=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    est = Roundtrip(random_state=0, **TINY).fit(frame, context=y)
    classifier = RoundtripClassifier.from_density(est)
    assert classifier.predict(frame[:5]).shape == (5,)  # without a warning, which were an error
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame[["b", "a"]])
    with pytest.raises(ValueError, match="must be a Roundtrip"):
        RoundtripClassifier(3).fit(X, y)


def test_a_class_that_has_not_converged_is_a_doubt_unless_it_is_far_behind(classifier, monkeypatch):
    """An estimate that failed is too low: that it is low does not make it certain."""
    X, _ = three_gaussians(200, seed=4)
    truth = np.exp(true_log_density(X)) * SHARES
    unsure = (np.sort(truth / truth.sum(axis=1, keepdims=True), axis=1)[:, 1] > 0.2).nonzero()[0]
    density = FittedDensity.density

    def failing(self, rows, *settings, **others):
        result = density(self, rows, *settings, **others)
        if not rows.context[0, 1]:
            return result
        return replace(
            result,
            log_density=result.log_density - 9,
            converged=np.zeros(len(rows), dtype=bool),
        )

    assert classifier.posterior(X[unsure]).converged.all()
    monkeypatch.setattr(FittedDensity, "density", failing)
    result = classifier.posterior(X[unsure])
    of_one = truth[unsure, 1] / truth[unsure].sum(axis=1) > 0.1
    assert of_one.any()
    assert not result.converged[of_one].any()


@pytest.mark.parametrize("radius", [20.0, 1e200])
def test_rows_far_from_the_data_have_the_posterior_of_the_densities(classifier, radius):
    """The encoder knows no such row, so that rough estimates are wrong by any number of nats."""
    angles = np.linspace(0, 2 * np.pi, 7)[:-1]
    X = 1 + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    result = classifier.posterior(X)
    est = classifier.estimator_
    each = [est.density(X, context=np.full(len(X), label)) for label in range(3)]
    joint = np.stack([part.log_density for part in each], axis=1) + np.log(SHARES)
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    assert np.isfinite(result.probability).all()
    assert result.converged.any()
    np.testing.assert_allclose(result.probability, expected, atol=0.1)


def test_a_far_row_needs_the_densities_of_all_classes(classifier, monkeypatch):
    density = FittedDensity.density

    def failing(self, rows, *settings, **others):
        result = density(self, rows, *settings, **others)
        hopeless = np.full(len(rows), bool(rows.context[0, 1]))
        return replace(
            result,
            log_density=np.where(hopeless, -500.0, result.log_density),
            converged=result.converged & ~hopeless,
        )

    monkeypatch.setattr(FittedDensity, "density", failing)
    assert not classifier.posterior([[30.0, 30.0]]).converged.any()


def test_rows_without_any_density_keep_the_prior(classifier, monkeypatch):
    density = FittedDensity.density

    def nothing(self, rows, *settings, **others):
        result = density(self, rows, *settings, **others)
        never = np.zeros(len(rows), dtype=bool)
        return replace(result, log_density=np.full(len(rows), -np.inf), converged=never)

    monkeypatch.setattr(FittedDensity, "density", nothing)
    result = classifier.posterior([[1e200, 0.0]])
    shares = classifier.class_count_ / classifier.class_count_.sum()
    np.testing.assert_allclose(result.probability, [shares])
    np.testing.assert_allclose(np.exp(classifier.predict_log_proba([[1e200, 0.0]])), [shares])
    assert not result.converged.any()


def test_classes_may_be_anything_hashable():
    X, y = three_gaussians(60, seed=0)
    for labels in ([("x", 0), ("x", 1), ("y", 1)], [1, "one", "two"]):
        names = [labels[each] for each in y]
        est = Roundtrip(random_state=0, **TINY).fit(X, context=names)
        predicted = RoundtripClassifier.from_density(est).predict(X[:10])
        assert set(predicted) <= set(names)
    with pytest.raises(ValueError, match="class_count"):
        RoundtripClassifier.from_density(est, class_count=[0, 0, 0])


@pytest.mark.parametrize("priors", [None, "uniform", [0.2, 0.5, 0.3], np.array([0.0, 0.5, 0.5])])
def test_saved_and_loaded_it_is_the_same(priors, named, tmp_path):
    classifier, frame = named
    classifier = copy(classifier).set_params(priors=priors)
    classifier.save(tmp_path / "classifier.rt")
    again = load(tmp_path / "classifier.rt")
    assert isinstance(again, RoundtripClassifier)
    np.testing.assert_array_equal(again.predict_proba(frame), classifier.predict_proba(frame))
    np.testing.assert_array_equal(again.predict(frame), classifier.predict(frame))
    np.testing.assert_array_equal(again.class_count_, classifier.class_count_)
    np.testing.assert_array_equal(again.priors, priors)
    assert again.classes_.dtype == classifier.classes_.dtype
    assert again.classes_.tolist() == ["blue", "green", "red"]
    assert list(again.feature_names_in_) == ["a", "b"]
    assert again.random_state == 7
    assert again.estimator.get_params() == classifier.estimator.get_params()
    assert again.estimator_.options_ == classifier.estimator_.options_


@pytest.fixture(scope="module")
def named():
    """A classifier of words by named columns, and a few rows."""
    X, y = three_gaussians(200, seed=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    density = Roundtrip(**(CHEAP | {"random_state": None}))
    classifier = RoundtripClassifier(density, random_state=7)
    return classifier.fit(frame, np.array(["red", "green", "blue"])[y]), frame[:4]


@pytest.mark.parametrize("kind", [bool, int, float, np.int32, str])
def test_labels_of_every_kind_survive_a_file(kind, tmp_path):
    X, y = three_gaussians(40, seed=0)
    classifier = RoundtripClassifier(Roundtrip(**CHEAP)).fit(X, (y == 1).astype(kind))
    classifier.save(tmp_path / "classifier.rt")
    again = load(tmp_path / "classifier.rt")
    assert again.classes_.tolist() == classifier.classes_.tolist()
    assert again.classes_.dtype.kind == classifier.classes_.dtype.kind
    np.testing.assert_array_equal(again.predict(X[:5]), classifier.predict(X[:5]))


@pytest.mark.parametrize(
    "labels",
    [
        [("x", 0), ("x", 1)],
        pd.to_datetime(["2020-01-01", "2021-01-01"]),
        [date(2020, 1, 1), date(2021, 1, 1)],
    ],
    ids=["tuples", "timestamps", "dates"],
)
def test_labels_that_a_file_cannot_hold_are_refused_and_nothing_is_written(labels, tmp_path):
    X, y = three_gaussians(40, seed=0)
    names = [labels[each] for each in (y == 1).astype(int)]
    est = Roundtrip(**CHEAP).fit(X, context=names)
    classifier = RoundtripClassifier.from_density(est)
    for each in (classifier, est):
        with pytest.raises(ValueError, match="can't be saved: a model file holds labels that are"):
            each.save(tmp_path / "classifier.rt")
    assert not list(tmp_path.iterdir())


def test_an_unfitted_classifier_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        RoundtripClassifier().save(tmp_path / "classifier.rt")
    assert not list(tmp_path.iterdir())


@parametrize_with_checks([RoundtripClassifier(Roundtrip(**CHEAP))])
def test_scikit_learn_classifier_checks(estimator, check):
    check(estimator)


def test_a_failed_fit_and_a_later_fit_of_the_density_change_nothing(rng):
    X = rng.normal(size=(200, 2))
    labels = np.where(X[:, 0] > 0, "right", "left")
    density = Roundtrip(latent_dim=2, **CHEAP).fit(X, context=labels)
    classifier = RoundtripClassifier.from_density(density)
    before = classifier.predict_proba(X[:5])
    density.fit(rng.normal(size=(200, 3)))
    with pytest.raises(ValueError, match="estimator must be"):
        classifier.set_params(estimator="none").fit(rng.normal(size=(50, 4)), labels[:50])
    np.testing.assert_array_equal(classifier.predict_proba(X[:5]), before)


def test_one_class_is_refused_before_training(rng):
    with pytest.raises(ValueError, match="at least two classes, but all of y is 1"):
        RoundtripClassifier().fit(rng.normal(size=(30, 2)), np.ones(30, dtype=int))
