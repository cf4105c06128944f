import numpy as np
import pytest

from roundtrip import Roundtrip
from roundtrip.data.scaling import Scaling


@pytest.mark.parametrize("kind", ["standard", "minmax"])
@pytest.mark.parametrize("offset", [0.0, 1e9, -1e9])
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_a_large_offset_costs_no_digits(offset, unit, kind, rng):
    z = rng.normal(size=(500, 1))
    X = offset + unit * z
    exact = (X - offset) / unit  # what is left of z in the digits of X
    scaled = Scaling.fit(X, kind).apply(X)
    if kind == "standard":
        assert abs(scaled.mean()) < 1e-2
        assert scaled.std() == pytest.approx(1, rel=1e-6)
    expected = Scaling.fit(exact, kind)
    assert Scaling.fit(X, kind).scale == pytest.approx(expected.scale * unit, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e150])
def test_units_of_any_size(unit, rng):
    z = rng.normal(size=(500, 2))
    np.testing.assert_allclose(
        Scaling.fit(unit * z, "standard").scale, unit * z.std(axis=0), rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_constant_columns_are_only_shifted(kind):
    X = np.stack([np.full(5, 1e9), np.array([0.3, 0.1 + 0.2, 0.3, 0.3, 0.3])], axis=1)
    scaling = Scaling.fit(X, kind)
    np.testing.assert_array_equal(scaling.scale, 1)
    np.testing.assert_allclose(scaling.apply(X), 0, atol=1e-15)


def test_densities_far_from_zero_are_those_near_zero(tiny, rng):
    X = 2.0**-13 * np.round(rng.normal(size=(300, 1)), 3)
    near = tiny.fit(X).score_samples(X)
    far = Roundtrip(**tiny.get_params(deep=False)).fit(X + 2.0**30).score_samples(X + 2.0**30)
    np.testing.assert_allclose(far, near, atol=0.3)
