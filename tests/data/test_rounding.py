import json

import numpy as np
import pytest

from roundtrip.data.resolution import recognise
from roundtrip.data.rounding import Rounding

RNG = np.random.RandomState


def column(kind, rng, n=2000):
    values = rng.gamma(2, 5, size=n)
    if kind == "tenths":
        values = np.round(values, 1)
    elif kind == "partly whole":
        values[: n // 2] = np.rint(values[: n // 2])
    elif kind == "standardised counts":
        values = (np.rint(values) - 10.4) / 7.3
    elif kind == "spike":
        values[: n // 2] = 0
    elif kind == "log counts":
        values = np.log1p(np.rint(values))
    return values


KINDS = ["tenths", "partly whole", "standardised counts", "spike", "log counts", "exact"]


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_undoes_spreading(kind, rng):
    """Spread and rounded values have the distinct values and the frequencies of the column."""
    values = column(kind, rng)
    rounding = recognise(values)
    widths = rounding.spread_widths(values)
    spread = values + widths * (rng.random(len(values)) - 0.5)
    again = rounding.rounded(spread, RNG(0))
    if rounding.share in (0, 1):
        np.testing.assert_allclose(again, values, rtol=1e-12, atol=1e-12)
        return
    was, found = (np.isclose(each % rounding.step, 0) for each in (values, again))
    if kind == "spike":
        was, found = values == 0, again == 0
    assert found.mean() == pytest.approx(was.mean(), abs=0.03)
    assert np.abs(again - spread).max() <= widths.max() / 2 + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_roundings_survive_as_json(kind, rng):
    rounding = recognise(column(kind, rng))
    assert Rounding.restored(json.loads(json.dumps(rounding.plain()))) == rounding


def test_decimal_numbers_are_exact(rng):
    """0.3 instead of 0.30000000000000004, so that samples are among the values of the table."""
    values = np.round(rng.normal(size=500), 1)
    samples = recognise(values).rounded(rng.normal(size=500), RNG(0))
    assert set(samples) <= set(np.round(np.arange(-60, 60) / 10, 1))
    assert samples.min() >= values.min()
    assert samples.max() <= values.max()


def test_the_evidence_is_a_sentence(rng):
    shown = {
        "tenths": "distinct values are multiples of 0.1",
        "partly whole": "% of the values are multiples of 1; the others are exact",
        "standardised counts": "plus multiples of 0.137",
        "spike": "50 % of the values are 0; the others are exact",
        "log counts": "repeated values without a common step",
        "exact": "distinct values without a common step",
    }
    for kind, sentence in shown.items():
        assert sentence in str(recognise(column(kind, rng)))
    assert str(recognise(np.full(3, 7.0))) == "all values are 7"
