import warnings

import numpy as np
import pytest
import torch

from roundtrip.density.diagnostics import pareto_k, reliable_k

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # arviz announces its own successor at import
    import arviz

DISTRIBUTIONS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy": lambda rng, shape: 3 * rng.normal(size=shape),
    "pareto": lambda rng, shape: rng.exponential(size=shape),
    "light": lambda rng, shape: np.log(rng.uniform(size=shape)),
}


@pytest.mark.parametrize("n", [64, 500, 10_000])
@pytest.mark.parametrize("draw", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS.keys())
def test_agrees_with_arviz(draw, n):
    log_weights = draw(np.random.default_rng(0), (6, n)) - 700
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = arviz.psislw(log_weights)[1]
    ours = pareto_k(torch.from_numpy(log_weights)).numpy()
    np.testing.assert_allclose(ours, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [0.2, 0.7, 1.2])
def test_recovers_a_known_shape(shape):
    uniform = np.random.default_rng(0).uniform(size=(4, 100_000))
    log_weights = -shape * np.log(uniform)
    found = pareto_k(torch.from_numpy(log_weights)).numpy()
    np.testing.assert_allclose(found, shape, atol=0.15)


def test_equal_weights_are_harmless():
    assert (pareto_k(torch.zeros(2, 200, dtype=torch.float64)) <= reliable_k(200)).all()
