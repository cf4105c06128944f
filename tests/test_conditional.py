"""p(x | context) and p(y | x) against exact values."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from oracles import LinearModel
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from roundtrip import Roundtrip, RoundtripClassifier, load
from roundtrip.data.context import Context
from roundtrip.density import estimate
from roundtrip.model.core import RoundtripModel

TINY = {
    "max_epochs": 2,
    "min_steps_per_epoch": 20,
    "generator_hidden": (16,),
    "encoder_hidden": (16,),
    "noise_boxes": 4,
    "validation_rows": 50,
    "tol": 0.3,
}
SMALL = {
    "max_epochs": 8,
    "generator_hidden": (48, 48),
    "encoder_hidden": (48, 48),
    "noise_boxes": 8,
    "batch_size": 256,
}
MEANS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
SDS = np.array([1.0, 0.5, 0.7])
SHARES = np.array([0.5, 0.3, 0.2])


def three_gaussians(rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=rows, p=SHARES)
    return MEANS[y] + SDS[y, None] * rng.normal(size=(rows, 2)), y


def true_log_density(X):
    """log p(x | y), `(rows, 3)`."""
    squared = ((X[:, None] - MEANS) ** 2).sum(-1) / SDS**2
    return -0.5 * squared - np.log(2 * np.pi * SDS**2)


def linear(weight, bias):
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


@pytest.mark.parametrize("method", ["adaptive", "importance", "laplace"])
def test_linear_gaussian_classes_are_exact(method):
    """x = W z + B c + b + noise: given c, x is a known Gaussian."""
    generator = torch.Generator().manual_seed(0)
    W, B, b, back = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((4, 2), (4, 3), (4,), (2, 7))
    )
    model = RoundtripModel(
        linear(torch.cat([W, B], dim=1), b),
        linear(0.1 * back, torch.zeros(2)),
        2,
        sigma=0.5,
        context_dim=3,
    )
    x = 2 * torch.randn(30, 4, generator=generator, dtype=torch.float64)
    context = torch.eye(3, dtype=torch.float64)[torch.arange(30) % 3]
    covariance = W @ W.T + 0.25 * torch.eye(4, dtype=torch.float64)
    exact = torch.distributions.MultivariateNormal(context @ B.T + b, covariance).log_prob(x)
    result = estimate(model, x, context=context, method=method)
    error = result.log_density - exact.numpy()
    if method == "laplace":
        np.testing.assert_allclose(error, 0, atol=1e-9)
    else:
        assert np.abs(error / result.std_error).max() < 5
        assert result.std_error.max() < 0.3
    # The order of rows does not matter, and swapped labels swap the densities.
    order = torch.randperm(30, generator=generator)
    shuffled = estimate(model, x[order], context=context[order], method=method)
    np.testing.assert_allclose(shuffled.log_density, result.log_density[order], atol=1e-9)
    others = context.roll(1, dims=1)
    swapped = estimate(model, x, context=others, method=method)
    exact = torch.distributions.MultivariateNormal(others @ B.T + b, covariance).log_prob(x)
    np.testing.assert_allclose(swapped.log_density, exact, atol=0.3)
    assert np.abs(swapped.log_density - result.log_density).max() > 1
    with pytest.raises(ValueError, match="context must have shape"):
        estimate(model, x, context=context[:, :2])


@pytest.fixture(scope="module")
def fitted():
    X, y = three_gaussians(4000, seed=0)
    names = np.array(["red", "green", "blue"])[y]
    est = Roundtrip(**SMALL, random_state=0).fit(X, context=names)
    return est, X, y


def test_class_conditional_densities_are_near_the_truth(fitted):
    est, _, _ = fitted
    X, y = three_gaussians(600, seed=1)
    truth = true_log_density(X)
    for place, name in enumerate(["red", "green", "blue"]):
        mine = y == place
        gap = est.score_samples(X[mine], context=name) - truth[mine, place]
        assert abs(gap.mean()) < 0.1
    names = np.array(["red", "green", "blue"])[y]
    together = est.score_samples(X, context=names)
    np.testing.assert_allclose(
        together[y == 2], est.score_samples(X[y == 2], context="blue"), atol=1e-9
    )
    assert est.score(X, context=names) == pytest.approx(together.mean())


def test_samples_are_of_the_class_that_was_asked_for(fitted):
    est, _, _ = fitted
    green = est.sample(2000, random_state=0, context="green")
    np.testing.assert_allclose(green.mean(axis=0), MEANS[1], atol=0.1)
    np.testing.assert_allclose(green.std(axis=0), SDS[1], atol=0.1)
    both = est.sample(2, random_state=0, context=["red", "blue"])
    assert both.shape == (2, 2)


def test_codes_and_files_keep_the_context(fitted, tmp_path):
    est, X, y = fitted
    names = np.array(["red", "green", "blue"])[y][:10]
    est.save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    assert again.context_.labels == ("blue", "green", "red")
    np.testing.assert_array_equal(
        again.score_samples(X[:10], context=names), est.score_samples(X[:10], context=names)
    )
    Z = est.transform(X[:10], context=names)
    assert est.inverse_transform(Z, context=names).shape == (10, 2)


def test_mistakes_with_context_are_explained(fitted):
    est, X, _ = fitted
    with pytest.raises(ValueError, match="fitted with context="):
        est.score_samples(X[:3])
    with pytest.raises(ValueError, match="'pink'; known are 'blue', 'green', 'red'"):
        est.score_samples(X[:3], context=["red", "pink", "red"])
    with pytest.raises(ValueError, match="2 rows, X of 3"):
        est.score_samples(X[:3], context=["red", "red"])
    with pytest.raises(ValueError, match="missing"):
        Roundtrip(**TINY).fit(X[:50], context=[None, *["a"] * 49])
    plain = Roundtrip(**TINY).fit(X[:50])
    with pytest.raises(ValueError, match="not given in fit"):
        plain.score_samples(X[:3], context="red")


def test_covariates_shift_the_density(tmp_path):
    rng = np.random.default_rng(0)
    t = rng.uniform(-2, 2, size=3000)
    X = (np.sin(2 * t) + 0.3 * rng.normal(size=3000))[:, None]
    est = Roundtrip(**SMALL, random_state=0).fit(X, context=t)
    at = np.array([-1.5, 0.0, 0.7])
    x = np.sin(2 * at)[:, None]
    truth = -0.5 * np.log(2 * np.pi * 0.09)
    np.testing.assert_allclose(est.score_samples(x, context=at), truth, atol=0.35)
    assert (est.score_samples(x + 1, context=at) < truth - 2).all()
    est.save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    np.testing.assert_array_equal(
        again.score_samples(x, context=at), est.score_samples(x, context=at)
    )
    with pytest.raises(ValueError, match="2 columns, but it had 1"):
        est.score_samples(x, context=np.stack([at, at], axis=1))


@pytest.mark.parametrize("objective", ["likelihood", "adversarial", "hybrid"])
def test_every_objective_takes_a_context(objective):
    X, y = three_gaussians(200, seed=0)
    est = Roundtrip(objective=objective, random_state=0, **TINY).fit(X, context=y)
    assert np.isfinite(est.score_samples(X[:5], context=y[:5])).all()
    validated = Roundtrip(objective=objective, random_state=0, **TINY).fit(
        X, context=y, validation_data=X[:20], validation_context=y[:20]
    )
    assert validated.sample(3, context=1).shape == (3, 2)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([3, 1, 3], (1, 3)),
        (np.array(["b", "a"]), ("a", "b")),
        (pd.Series(["b", "a"], dtype="category"), ("a", "b")),
        ([True, False], (False, True)),
        ([("x", 1), ("x", 0)], (("x", 0), ("x", 1))),
        ([1, "one"], (1, "one")),
        (np.array([1.0, 2.0]), (1.0, 2.0)),
    ],
)
def test_labels_may_be_anything_hashable(values, labels):
    context = Context.fit(values)
    assert context.labels == labels
    assert context.encode(values, len(values)).sum() == len(values)


def test_columns_of_a_context_go_by_name():
    frame = pd.DataFrame({"a": [0.5, 1.5], "b": [7.0, 9.0]})
    context = Context.restored(Context.fit(frame).plain())
    np.testing.assert_array_equal(
        context.encode(frame[["b", "a"]], 2), context.encode(frame.to_numpy(), 2)
    )
    with pytest.raises(ValueError, match="columns 'a', 'c', but in fit it had 'a', 'b'"):
        context.encode(frame.rename(columns={"b": "c"}), 2)


def test_numbers_with_fractions_and_tables_are_covariates():
    assert Context.fit([0.5, 1.0]).labels is None
    assert Context.fit([0, 0.5, 1]).labels is None
    assert Context.fit(np.ones((3, 2))).width == 2
    years = np.array([[1990], [2010], [2011]])
    for kind in (np.int64, np.uint16, np.float32):
        assert Context.fit(years.astype(kind)).width == 1
    assert Context.fit(years[:, 0]).width == 3
    assert Context.fit(np.array([["a"], ["b"]])).labels == ("a", "b")
    with pytest.raises(ValueError, match="missing values"):
        Context.fit(pd.Series(["a", pd.NA]))
    with pytest.raises(ValueError, match="missing or infinite"):
        Context.fit([0.5, np.nan])


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
    agreement = (classifier.predict(X) == truth.argmax(axis=1)).mean()
    assert agreement > 0.97
    np.testing.assert_allclose(
        np.exp(classifier.predict_log_proba(X[:20])), result.probability[:20], atol=1e-12
    )


def test_error_bars_of_posteriors_cover_other_draws(classifier):
    """Scores with other random draws scatter as the error bars say."""
    X, _ = three_gaussians(500, seed=2)
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
    other.scoring_seed_ = seed
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


def test_wrong_priors_are_told_before_the_fit(monkeypatch):
    monkeypatch.setattr(Roundtrip, "fit", lambda *_, **__: pytest.fail("is fitted"))
    X, y = three_gaussians(50, seed=0)
    with pytest.raises(ValueError, match="priors must sum to 1"):
        RoundtripClassifier(priors=[0.5, 0.2, 0.2]).fit(X, y)


@pytest.mark.parametrize("objective", ["likelihood", "adversarial"])
def test_posterior_follows_from_the_densities(objective):
    X, y = three_gaussians(300, seed=0)
    est = Roundtrip(objective=objective, random_state=0, **TINY).fit(X, context=y)
    result = RoundtripClassifier.from_density(est).posterior(X[:20])
    joint = np.stack([est.score_samples(X[:20], context=label) for label in range(3)], axis=1)
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(result.probability, expected, atol=1e-4)


def test_without_a_first_look_every_class_is_estimated_whatever_its_prior():
    X, y = three_gaussians(300, seed=0)
    est = Roundtrip(objective="adversarial", random_state=0, **TINY).fit(X, context=y)
    rare = 1e-9
    classifier = RoundtripClassifier.from_density(est, priors=[rare, 0.0, 1 - rare])
    result = classifier.posterior(X[:5])
    np.testing.assert_array_equal(result.probability[:, 1], 0)
    assert np.isfinite(result.log_density_error[:, [0, 2]]).all()
    assert np.isnan(result.log_density[:, 1]).all()
    np.testing.assert_array_equal(classifier.predict_log_proba(X[:5])[:, 1], -np.inf)


def test_errors_under_different_contexts_are_independent():
    """With a G that ignores the context, one set of draws for all would give one value for all."""
    oracle = LinearModel(2, 3)
    W, b = oracle.model.generator.weight, oracle.model.generator.bias
    back, shift = oracle.model.encoder.weight, oracle.model.encoder.bias
    model = RoundtripModel(
        linear(torch.cat([W, torch.zeros(3, 2)], dim=1), b),
        linear(torch.cat([back, torch.zeros(2, 2)], dim=1), shift),
        2,
        sigma=oracle.sigma,
        context_dim=2,
    )
    x = oracle.points(400)
    errors = [
        estimate(model, x, context=torch.eye(2)[[place] * 400], tol=0.1).log_density
        - oracle.log_density(x)
        for place in (0, 1)
    ]
    assert abs(np.corrcoef(errors)[0, 1]) < 4 / np.sqrt(400)


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
    density = Roundtrip.density

    def failing(self, X, *, context, **settings):
        result = density(self, X, context=context, **settings)
        if context != 1:
            return result
        return replace(
            result,
            log_density=result.log_density - 9,
            converged=np.zeros(len(X), dtype=bool),
        )

    assert classifier.posterior(X[unsure]).converged.all()
    monkeypatch.setattr(Roundtrip, "density", failing)
    result = classifier.posterior(X[unsure])
    of_one = truth[unsure, 1] / truth[unsure].sum(axis=1) > 0.1
    assert of_one.any()
    assert not result.converged[of_one].any()


def test_classes_may_be_anything_hashable():
    X, y = three_gaussians(60, seed=0)
    for labels in ([("x", 0), ("x", 1), ("y", 1)], [1, "one", "two"]):
        names = [labels[each] for each in y]
        est = Roundtrip(random_state=0, **TINY).fit(X, context=names)
        predicted = RoundtripClassifier.from_density(est).predict(X[:10])
        assert set(predicted) <= set(names)
    with pytest.raises(ValueError, match="class_count"):
        RoundtripClassifier.from_density(est, class_count=[0, 0, 0])


@parametrize_with_checks([RoundtripClassifier(Roundtrip(**TINY))])
def test_scikit_learn_classifier_checks(estimator, check):
    check(estimator)
