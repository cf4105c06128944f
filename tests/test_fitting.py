import numpy as np
import pytest
import torch

from roundtrip import Roundtrip
from roundtrip.data.scaling import column_resolution
from roundtrip.training.run import CONTINUOUS_FLOOR, ROUNDED_FLOOR, FittingData


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


def test_the_floor_follows_spread_and_resolution(rng):
    data = torch.from_numpy(rng.normal(size=(5000, 3)))
    data[:, 1] *= 0.01  # most rows close together ...
    data[0, 1] = 1e3  # ... and one far away
    resolution = torch.tensor([0.0, 0.0, 0.5], dtype=torch.float64)
    floor = FittingData(data, data, resolution, jitter=False, log_det=0.0).noise_floor
    assert floor[0] == pytest.approx(CONTINUOUS_FLOOR, rel=0.1)
    assert floor[1] == pytest.approx(0.0135 * CONTINUOUS_FLOOR, rel=0.1)
    assert floor[2] == pytest.approx(0.5 * ROUNDED_FLOOR)


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
def test_dequantised_density_gives_a_value_its_probability(rng):
    """Over a rounding step the density integrates to the share of the value."""
    X = rng.choice([0.0, 1.0, 2.0], p=[0.5, 0.2, 0.3], size=(4000, 1))
    networks = {"generator_hidden": (64,), "encoder_hidden": (64,)}
    est = Roundtrip(1, **networks, max_epochs=10, random_state=0).fit(X)
    assert est.resolution_ == [1.0]
    axis = np.linspace(-0.5, 2.5, 301)
    density = np.exp(est.score_samples((axis[:-1] + 0.005)[:, None]))
    shares = density.reshape(3, 100).mean(axis=1)
    np.testing.assert_allclose(shares, [0.5, 0.2, 0.3], atol=0.05)
    assert (np.abs(est.sample(1000, random_state=0)) < 4).all()
