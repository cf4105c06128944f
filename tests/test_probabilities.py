"""Probabilities of ranges and levels, against closed forms and quadrature."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from fitted_oracles import GaussianTable, MixedTable

from roundtrip import Roundtrip
from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    """Probabilities are right however well the encoder of parts of rows is trained."""
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=60))


@pytest.fixture(scope="module", params=[False, True], ids=["gaussian", "groups"])
def numbers(request):
    return GaussianTable(2, 4, groups=request.param)


@pytest.fixture(scope="module")
def mixed():
    return MixedTable()


def check(p, truth):
    assert p.converged.all()
    assert (np.abs(p.probability - truth) < 4.5 * p.std_error).all()


def test_ranges_given_nothing_a_row_and_rows(numbers):
    law = numbers.given("b", {})
    p = numbers.est.probability({"b": (None, -1.5)})
    check(p, law.cdf(-1.5))
    assert p.std_error[0] < 0.02 * float(p)
    rows = numbers.table(20, seed=2)[["a", "c"]]
    rows.index = rows.index + 10
    p = numbers.est.probability({"b": (-1, 0.5)}, given=rows, tol=0.01)
    laws = [numbers.given("b", row.to_dict()) for _, row in rows.iterrows()]
    check(p, [law.cdf(0.5) - law.cdf(-1) for law in laws])
    assert p.to_frame().index.equals(rows.index)
    one = numbers.est.probability({"b": (-1, 0.5)}, given=rows.iloc[3].to_dict(), tol=0.01)
    assert float(one) == p.probability[3]


def test_rare_events_are_as_certain_as_others(numbers):
    law = numbers.given("b", {"a": 0.5, "c": -0.2})
    far = law.mean + 5 * law.std
    p = numbers.est.probability({"b": (far, None)}, given={"a": 0.5, "c": -0.2})
    truth = 1 - law.cdf(far)
    assert truth < 1e-5
    check(p, truth)


def test_an_event_and_its_opposite_sum_to_one(numbers):
    known = {"a": (0.0, None)}
    both = [
        numbers.est.probability({"b": ends}, given=known, tol=0.005)
        for ends in ((None, -1.0), (-1.0, None))
    ]
    error = np.hypot(both[0].std_error, both[1].std_error)
    assert abs(float(both[0]) + float(both[1]) - 1) < 4 * error


def test_joint_probabilities_are_products(numbers):
    joint = numbers.est.probability({"a": (0, None), "b": (None, 0)}, tol=0.005)
    first = numbers.est.probability({"a": (0, None)}, tol=0.005)
    second = numbers.est.probability({"b": (None, 0)}, given={"a": (0, None)}, tol=0.005)
    assert float(joint) == pytest.approx(float(first) * float(second), rel=0.04)


def test_levels_counts_and_dates_agree_with_quadrature(mixed):
    day = pd.Timestamp("2020-02-01")
    event = {"colour": ["red", "green"], "visits": (2, 4)}
    p = mixed.est.probability(event, given={"size": ("M", "L"), "day": (None, day)}, tol=0.01)
    weights = mixed.posterior(size=lambda x: x != "S", day=lambda x: x <= 18293)
    for name, holds in (("colour", lambda x: x != "blue"), ("visits", lambda x: 2 <= x <= 4)):
        values, p_of = mixed.masses(name)
        weights = weights * (p_of @ np.array([float(holds(value)) for value in values]))
    assert float(p) == pytest.approx(weights.sum(), rel=0.03)
    values, truth = mixed.law("visits")
    assert float(mixed.est.probability({"visits": 3})) == pytest.approx(
        truth[values == 3][0], rel=0.06
    )


def test_a_cell_in_a_range_is_not_missing():
    table = MixedTable().learned[["height", "visits"]].astype({"visits": "Int64"})
    table.loc[::2, "visits"] = None
    est = Roundtrip(missing="model", max_epochs=2, latent_dim=1, random_state=0).fit(table)
    p = est.probability({"visits": (-1000, None)}, tol=0.03)
    assert float(p) == pytest.approx(0.5, abs=0.15)


def test_impossible_events_have_probability_zero(numbers):
    p = numbers.est.probability({"a": (1e4, None)}, given={"b": 0.0})
    assert float(p) == 0
    assert repr(p).startswith("<ProbabilityEstimate: 0 ± 0")


@pytest.mark.parametrize(
    ("event", "given", "message"),
    [
        ({"price": 1}, None, "event names 'price', but the columns are"),
        ({}, None, "event must name at least one column"),
        ({"height": 170.0}, None, r"event\['height'\]: a single value of a column that is not r"),
        ({"height": (2, 1)}, None, "is empty"),
        ({"visits": (1, 2)}, {"visits": 3}, "event and given both name 'visits'"),
        ({"visits": (1, 2)}, {"size": ("L", "S")}, r"given\['size'\]: the range"),
    ],
)
def test_bad_questions_are_refused(mixed, event, given, message):
    with pytest.raises(ValueError, match=message):
        mixed.est.probability(event, given=given)


def test_bad_events_and_tolerances_are_refused(mixed):
    rows = mixed.learned.iloc[:2]
    with pytest.raises(ValueError, match="event must be a mapping"):
        mixed.est.probability(rows)
    with pytest.raises(ValueError, match="tol must be a number above 0"):
        mixed.est.probability({"visits": 3}, tol=0)
    p = mixed.est.probability({"colour": "red"}, given=rows[["height"]])
    with pytest.raises(TypeError, match="there are 2 probabilities, not one"):
        float(p)
