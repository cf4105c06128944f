"""p(x | context) against exact values."""

import numpy as np
import pytest
import torch
from oracles import LinearModel
from three_classes import (
    MEANS,
    SDS,
    SMALL,
    TINY,
    TINY_ADVERSARIAL,
    TINY_HYBRID,
    three_gaussians,
    true_log_density,
)

from roundtrip import Roundtrip, load
from roundtrip.density import estimate
from roundtrip.model.core import RoundtripModel


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
    names = np.array(["red", "green", "blue"])[y]
    together = est.score_samples(X, context=names)
    for place in range(3):
        mine = y == place
        assert abs((together - truth[:, place])[mine].mean()) < 0.1
    blue = (y == 2).nonzero()[0][:20]
    np.testing.assert_allclose(
        together[blue], est.score_samples(X[blue], context="blue"), atol=1e-9
    )
    assert est.score(X[:20], context=names[:20]) == pytest.approx(together[:20].mean(), abs=2e-3)


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
    assert again.schema_.context.labels == ("blue", "green", "red")
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
    with pytest.raises(ValueError, match="2 rows, but there are 3 rows"):
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


@pytest.mark.parametrize(
    "settings", [TINY, TINY_ADVERSARIAL, TINY_HYBRID], ids=["likelihood", "adversarial", "hybrid"]
)
def test_every_objective_takes_a_context(settings):
    X, y = three_gaussians(200, seed=0)
    est = Roundtrip(random_state=0, **settings).fit(X, context=y)
    assert np.isfinite(est.score_samples(X[:5], context=y[:5])).all()
    validated = Roundtrip(random_state=0, **settings).fit(
        X, context=y, validation_data=X[:20], validation_context=y[:20]
    )
    assert validated.sample(3, context=1).shape == (3, 2)


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
