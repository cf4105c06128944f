import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from roundtrip.data.resolution import column_resolution, recognise


def standardised(values):
    return (values - values.mean()) / values.std()


ROUNDED = {
    "decimals": (lambda rng, n: np.round(5 + rng.normal(size=n), 1), 0.1),
    "two decimals": (lambda rng, n: np.round(5 + 0.2 * rng.normal(size=n), 2), 0.01),
    "quarters": (lambda rng, n: rng.integers(20, size=n) / 4, 0.25),
    "thirds": (lambda rng, n: rng.integers(20, size=n) / 3, 1 / 3),
    "thirds with two decimals": (lambda rng, n: np.round(rng.integers(99, size=n) / 3, 2), 1 / 3),
    "counts": (lambda rng, n: rng.poisson(4, size=n), 1.0),
    "fives": (lambda rng, n: 5.0 * rng.integers(3, 30, size=n), 5.0),
    "fives from 3": (lambda rng, n: 3 + 5.0 * rng.integers(3, 30, size=n), 5.0),
    "arithmetic error": (lambda rng, n: 0.1 * rng.integers(30, size=n) + 1e-17, 0.1),
    "far from zero": (lambda rng, n: 1e9 + 0.1 * rng.integers(300, size=n), 0.1),
    "an outlier": (lambda rng, n: np.append(rng.integers(30, size=n - 1), 1e7), 1.0),
}


@pytest.mark.parametrize("n", [30, 150, 20_000])
@pytest.mark.parametrize(("make", "step"), ROUNDED.values(), ids=ROUNDED.keys())
def test_steps_are_recognised_in_small_and_large_tables(make, step, n):
    values = make(np.random.default_rng(1), n).astype(np.float64)
    rounding = recognise(values)
    assert rounding.step == pytest.approx(step, rel=1e-3)
    assert rounding.share == 1
    scaled = recognise(standardised(values))
    if make is not ROUNDED["thirds with two decimals"][0]:  # in which errors look like values
        assert scaled.step == pytest.approx(step / values.std(), rel=1e-3)


@pytest.mark.parametrize("n", [30, 150, 20_000])
@pytest.mark.parametrize("name", ["decimals", "two decimals", "quarters", "counts", "fives"])
def test_steps_are_recognised_in_single_precision(name, n):
    make, step = ROUNDED[name]
    values = make(np.random.default_rng(1), n).astype(np.float32).astype(np.float64)
    assert recognise(values).step == pytest.approx(step, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_large_gaps_are_counted_in_steps(seed):
    """One gap, here 0.33 or 0.34, gives the step too imprecisely to count those of large gaps."""
    thirds = np.random.default_rng(seed).choice(1000, size=60, replace=False) / 3
    thirds = np.append(thirds, np.arange(5) / 3)
    rounding = recognise(np.round(thirds, 2))
    assert rounding.step == pytest.approx(1 / 3, rel=1e-4)
    assert rounding.share == 1


CONTINUOUS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.random(n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) ** 3,
    "large": lambda rng, n: 1e12 * rng.normal(size=n),
    "shifted": lambda rng, n: 1e6 + rng.random(n),
}


@pytest.mark.parametrize(("n", "times"), [(2, 200), (3, 200), (5, 200), (30, 50), (100_000, 1)])
@pytest.mark.parametrize("make", CONTINUOUS.values(), ids=CONTINUOUS.keys())
def test_continuous_columns_are_not_taken_for_rounded(make, n, times):
    rng = np.random.default_rng(0)
    assert not column_resolution(np.stack([make(rng, n) for _ in range(times)], axis=1)).any()


@pytest.mark.parametrize(("n", "times"), [(2, 200), (5, 200), (30, 50), (100_000, 1)])
@pytest.mark.parametrize("name", ["normal", "uniform", "exponential", "large"])
def test_the_grid_of_float32_does_not_matter(name, n, times):
    rng = np.random.default_rng(0)
    for _ in range(times):
        values = CONTINUOUS[name](rng, n).astype(np.float32).astype(np.float64)
        assert recognise(values).step < 1e-4 * values.std()


def test_constant_and_nearly_constant_columns():
    assert recognise(np.full(5, 7.3)).step == 1
    assert recognise(np.array([0.3, 0.1 + 0.2, 0.3])).step == 1
    assert recognise(1e9 + 1e-4 * np.random.default_rng(0).normal(size=100)).step == 0


def test_few_values_are_taken_for_what_they_look_like():
    assert recognise(np.array([5.1, 4.9])).step == pytest.approx(0.1)
    assert recognise(np.array([3.0, 7.0, 11.0])).step == 1  # a step of 4 would be chance
    assert recognise(np.array([3.0, 7.0, 11.0] * 3)).step == 4
    assert recognise(np.array([-0.613, 1.63] * 5)).step == pytest.approx(0.001 * 2243)
    assert recognise(standardised(np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0]))).step > 2


@pytest.mark.parametrize(
    ("table", "steps"),
    [
        (load_iris().data, [0.1] * 4),
        (
            load_wine().data,
            [0.01, 0.01, 0.01, 0.1, 1, 0.01, 0.01, 0.01, 0.01, 0.01, 0.002, 0.01, 1],
        ),
        (load_breast_cancer().data[:, :4], [0.001, 0.01, 0.01, 0.1]),
        (load_diabetes(scaled=False).data[:, :8], [1, 1, 0.1, 1 / 3, 1, 0.1, 0.5, 0.01]),
    ],
    ids=["iris", "wine", "breast cancer", "diabetes"],
)
def test_steps_of_real_tables(table, steps):
    np.testing.assert_allclose(column_resolution(table), steps, rtol=1e-4)


def test_partly_rounded_columns(rng):
    values = rng.gamma(2, 5, size=1000)
    values[:800] = np.rint(values[:800])
    rounding = recognise(values)
    assert (rounding.step, rounding.share) == (1, 0.8)
    np.testing.assert_array_equal(rounding.spread_widths(values), [1.0] * 800 + [0.0] * 200)
    digits = recognise(np.round(values, 6))  # the others have six digits instead of all
    assert digits.step == 1
    assert digits.share == pytest.approx(0.8)
    far = recognise(standardised(values))
    assert far.share == pytest.approx(0.8)
    assert far.step == pytest.approx(1 / values.std())


def test_spikes_are_spread_over_a_width_with_few_other_values(rng):
    values = rng.exponential(size=2000)
    values[:600] = 0
    rounding = recognise(values)
    assert rounding.points == (0.0,)
    assert rounding.share == pytest.approx(0.3)
    widths = rounding.spread_widths(values)
    assert (widths[:600] == rounding.step).all()
    assert not widths[600:].any()
    assert (values[600:] < rounding.step / 2).mean() <= 0.06


def test_repeated_values_without_a_common_step_have_widths_of_their_own(rng):
    values = np.log1p(rng.poisson(3, size=500))
    rounding = recognise(values)
    assert rounding.share == 1
    low, width = values - rounding.spread_widths(values) / 2, rounding.spread_widths(values)
    order = np.argsort(values)
    low, high = low[order], (low + width)[order]
    new = np.diff(values[order]) > 0
    assert (high[:-1][new] <= low[1:][new] + 1e-12).all()  # intervals do not overlap


def test_bootstrapped_rows_are_not_rounded(rng):
    assert recognise(rng.choice(rng.normal(size=500), size=500)).step == 0


def test_a_few_odd_values_do_not_make_a_grid_finer_for_all():
    rng = np.random.default_rng(0)
    column = rng.integers(-20, 40, size=8_000).astype(float)
    column[:4] = [5 + 1 / 3, 7 + 2 / 3, -3 - 1 / 3, 11 + 1 / 3]
    rounding = recognise(column)
    drawn = rounding.rounded(rng.uniform(-20, 40, size=2_000), np.random.RandomState(0))
    assert np.isin(drawn, column).all()
    assert (drawn % 1 == 0).mean() > 0.95


def test_a_spike_does_not_pass_for_repetitions_of_other_values():
    rng = np.random.default_rng(0)
    column = np.round(rng.exponential(50, size=6_000), 7)
    column[:4_800] = 0.0
    rounding = recognise(column)
    assert rounding.points == (0.0,)
    assert rounding.share == pytest.approx(0.8, abs=0.01)
