"""Full-size default fits of tables that make training diverge: minutes."""

import numpy as np
import pytest

from roundtrip import Roundtrip


def mixed_scales(rng):
    return rng.normal(size=(5000, 6)) * [1e-12, 1e-6, 1, 1e3, 1e6, 1e12]


def with_one(value, rng):
    X = rng.normal(size=(2000, 4))
    X[17, 2] = value
    return X


NASTY = {
    "cauchy": lambda rng: rng.standard_cauchy(size=(5000, 4)),
    "cubed cauchy": lambda rng: rng.standard_cauchy(size=(5000, 4)) ** 3,
    "log-normal": lambda rng: np.exp(4 * rng.normal(size=(5000, 4))),
    "1e-12": lambda rng: 1e-12 * rng.normal(size=(5000, 4)),
    "1e12": lambda rng: 1e12 * rng.normal(size=(5000, 4)),
    "1e-12 to 1e12": mixed_scales,
    "far from zero": lambda rng: 1e9 + rng.normal(size=(5000, 4)),
    "one outlier": lambda rng: with_one(1e8, rng),
    "one huge outlier": lambda rng: with_one(1e30, rng),
    "duplicated rows": lambda rng: np.repeat(rng.normal(size=(20, 5)), 250, axis=0),
    "one row many times": lambda rng: np.ones((3000, 4)) * [1.0, 2.0, 3.0, 4.0],
    "constant column": lambda rng: np.c_[rng.normal(size=(5000, 3)), np.full(5000, 7.0)],
    "nearly constant column": lambda rng: np.c_[
        rng.normal(size=(5000, 3)), 7 + 1e-9 * rng.normal(size=5000)
    ],
    "binary columns": lambda rng: rng.integers(0, 2, size=(5000, 6)),
    "rare binary": lambda rng: np.c_[rng.normal(size=(5000, 3)), rng.random(5000) < 1e-3],
    "collinear": lambda rng: rng.normal(size=(5000, 2)) @ rng.normal(size=(2, 8)),
    "mostly zeros": lambda rng: rng.normal(size=(5000, 5)) * (rng.random((5000, 5)) < 0.02),
    "two rows": lambda rng: rng.normal(size=(2, 3)),
    "more columns than rows": lambda rng: rng.normal(size=(20, 40)),
    "a million rows": lambda rng: rng.standard_t(2, size=(1_000_000, 5)),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")  # finite, if not always certain
@pytest.mark.parametrize("make", NASTY.values(), ids=NASTY.keys())
@pytest.mark.filterwarnings("ignore:(.*rows are|the table has|the density concentrates)")
def test_ends_with_finite_densities(make, rng):
    X = make(rng)
    est = Roundtrip(random_state=0).fit(X, max_time=10)
    rows = X[rng.permutation(len(X))[:300]]
    assert np.isfinite(est.score_samples(rows)).all()
    assert np.isfinite(est.sample(300)).all()
    history = est.history_["validation_log_likelihood"]
    assert np.isfinite(history).all()
    assert est.stopped_by_ != "divergence"
