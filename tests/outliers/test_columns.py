import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

from roundtrip.outliers.columns import BEND, GaussianColumns


def test_gaussian_columns_are_normal_monotone_and_drawn_in_outside(rng):
    X = np.column_stack(
        [np.exp(rng.normal(size=5000)), rng.integers(3, size=5000), np.full(5000, 0.1)]
    )
    columns = GaussianColumns.fit(X)
    mapped = columns.apply(X)
    inner = np.abs(mapped[:, 0]) < BEND
    assert kstest(mapped[inner, 0], truncnorm(-BEND, BEND).cdf).pvalue > 0.01
    probes = np.repeat(np.linspace(-50, 50, 400)[:, None], 3, axis=1)
    steps = np.diff(columns.apply(probes), axis=0)
    assert (steps >= 0).all()
    far = columns.apply(np.array([[1e3, 0, 0.1], [1e6, 0, 0.1]]))[:, 0]
    assert BEND + 1 < far[0] < far[1] - 1 < 15
    constant, near, other = columns.apply(np.array([[1, 0, 0.1], [1, 0, 0.1 + 1e-9], [1, 0, 0.2]]))[
        :, 2
    ]
    assert constant == 0
    assert constant == pytest.approx(near, abs=1e-6)
    assert other > constant + 1
