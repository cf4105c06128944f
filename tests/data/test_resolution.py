import numpy as np

from roundtrip.data.resolution import column_resolution


def test_resolution_of_columns():
    rng = np.random.default_rng(0)
    X = np.stack(
        [
            rng.normal(size=1000),
            rng.integers(7, size=1000),
            np.round(rng.normal(size=1000), 1),
            np.full(1000, 3.0),
            0.1 * rng.integers(5, size=1000) + 1e-17,
        ],
        axis=1,
    )
    np.testing.assert_allclose(column_resolution(X), [0, 1, 0.1, 1, 0.1], rtol=1e-9)
