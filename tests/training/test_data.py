import pytest
import torch

from roundtrip.data import Rows
from roundtrip.training.data import CONTINUOUS_FLOOR, ROUNDED_FLOOR, FittingData


def test_the_floor_follows_spread_and_resolution(rng):
    data = torch.from_numpy(rng.normal(size=(5000, 3)))
    data[:, 1] *= 0.01  # most rows close together ...
    data[0, 1] = 1e3  # ... and one far away
    resolution = torch.tensor([0.0, 0.0, 0.5], dtype=torch.float64)
    rows = Rows.without_context(data)
    floor = FittingData(rows, rows, resolution, jitter=False, log_det=0.0).noise_floor
    assert floor[0] == pytest.approx(CONTINUOUS_FLOOR, rel=0.1)
    assert floor[1] == pytest.approx(0.0135 * CONTINUOUS_FLOOR, rel=0.1)
    assert floor[2] == pytest.approx(0.5 * ROUNDED_FLOOR)


def test_rows_for_the_prior_are_drawn_from_the_whole_table():
    """A table may be sorted: its first rows would show only a part of the codes."""
    rows = Rows.without_context(torch.arange(1000.0, dtype=torch.float64)[:, None])
    data = FittingData(rows, rows[:10], torch.zeros(1), jitter=False, log_det=0.0)
    some, _ = data.as_trained(100, seed=0)
    assert some.x.shape == (100, 1)
    assert some.x.min() < 100
    assert some.x.max() > 900


@pytest.mark.parametrize("width", [1e-310, 1e-170, 1e-45])
def test_columns_too_narrow_for_float32_are_refused(width, rng):
    data = torch.from_numpy(rng.normal(size=(50, 3)))
    data[:, 1] = 7.0  # constant columns are fine
    rows = Rows.without_context(data)
    FittingData(rows, rows, torch.zeros(3), jitter=False, log_det=0.0)
    data[:, 2] *= width
    with pytest.raises(ValueError, match=r"columns \[2\] span a range too narrow for float32"):
        FittingData(rows, rows, torch.zeros(3), jitter=False, log_det=0.0)
