"""Rows drawn given a part of them, against closed forms and quadrature."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from fitted_oracles import GaussianTable, MixedTable
from scipy.stats import chisquare, kstest

from roundtrip import Roundtrip
from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    """Draws are right however well the encoder of parts of rows is trained."""
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=60))


@pytest.fixture(scope="module", params=[False, True], ids=["gaussian", "groups"])
def numbers(request):
    return GaussianTable(2, 4, groups=request.param)


@pytest.fixture(scope="module")
def mixed():
    return MixedTable()


def test_draws_follow_the_conditional_distribution(numbers):
    known = {"a": 0.5, "c": -0.2}
    drawn = numbers.est.sample(2_000, 0, given=known)
    assert list(drawn) == numbers.names
    assert (drawn["a"] == 0.5).all()
    assert (drawn["c"] == -0.2).all()
    for name in ("b", "d"):
        assert kstest(drawn[name], numbers.given(name, known).cdf).pvalue > 0.001
    assert drawn["b"].nunique() == 2_000


def test_draws_for_each_row_of_a_table(numbers):
    rows = numbers.table(3, seed=4)[["d", "a"]]
    rows.index = ["x", "y", "z"]
    drawn = numbers.est.sample(700, 0, given=rows)
    assert drawn.index.tolist() == ["x"] * 700 + ["y"] * 700 + ["z"] * 700
    for label, row in rows.iterrows():
        part = drawn.loc[label]
        assert (part[["d", "a"]] == row).all(axis=None)
        law = numbers.given("b", row.to_dict())
        assert kstest(part["b"], law.cdf).pvalue > 0.001


def test_equal_rows_of_conditions_have_independent_draws(numbers):
    rows = pd.DataFrame({"a": np.full(1_500, 0.5)})
    drawn = numbers.est.sample(1, 0, given=rows)
    assert kstest(drawn["c"], numbers.given("c", {"a": 0.5}).cdf).pvalue > 0.001


def test_missing_cells_of_conditions_are_drawn(numbers):
    rows = pd.DataFrame({"a": [0.5, np.nan], "b": [np.nan, 1.0]})
    drawn = numbers.est.sample(400, 0, given=rows)
    assert not drawn.isna().any(axis=None)
    assert kstest(drawn["b"][0], numbers.given("b", {"a": 0.5}).cdf).pvalue > 0.001
    assert kstest(drawn["a"][1], numbers.given("a", {"b": 1.0}).cdf).pvalue > 0.001


def test_ranges_limit_numbers(numbers):
    drawn = numbers.est.sample(1_500, 0, given={"a": (0.5, None), "c": -0.2})
    assert (drawn["a"] > 0.5).all()
    alone = numbers.given("a", {"c": -0.2})
    below = alone.cdf(0.5)
    truth = kstest(drawn["a"], lambda x: (alone.cdf(x) - below) / (1 - below))
    assert truth.pvalue > 0.001
    # b given the range, by summing over a.
    grid = np.linspace(0.5, 8, 400)
    weights = alone.pdf(grid)
    each = [numbers.given("b", {"a": a, "c": -0.2}) for a in grid]
    means = np.array([law.mean for law in each])
    error = drawn["b"].std() / np.sqrt(1_500)
    assert abs(drawn["b"].mean() - weights @ means / weights.sum()) < 4 * error


def frequencies(drawn, values):
    return np.array([(drawn == value).sum() for value in values])


def check_frequencies(drawn, values, p):
    """Compare draws with probabilities of values; rare values count together."""
    counts, p = frequencies(drawn, values), p / p.sum()
    common = p * len(drawn) >= 5
    found = np.append(counts[common], counts[~common].sum())
    expected = np.append(p[common], p[~common].sum()) * counts.sum()
    keep = expected > 0.5
    found, expected = found[keep], expected[keep]
    assert chisquare(found, expected * found.sum() / expected.sum()).pvalue > 0.001


def test_draws_of_all_kinds_follow_quadrature(mixed):
    given = {"height": (165, 172), "colour": ["red", "blue"], "size": ("M", None)}
    drawn = mixed.est.sample(1_500, 0, given=given)
    assert drawn.dtypes.equals(mixed.learned.dtypes)
    assert drawn["height"].between(165, 172).all()
    assert set(drawn["colour"]) <= {"red", "blue"}
    assert set(drawn["size"]) <= {"M", "L"}
    conditions = {
        "height": lambda x: 165 <= x <= 172,
        "colour": lambda x: x in ("red", "blue"),
        "size": lambda x: x != "S",
    }
    values, p = mixed.masses("visits")
    inside = (values >= 0) & (values <= mixed.learned["visits"].max())
    p = p[:, inside] / p[:, inside].sum(axis=1, keepdims=True)  # drawn again given the same z
    check_frequencies(drawn["visits"], values[inside], mixed.posterior(**conditions) @ p)
    for name in ("colour", "size"):
        values, p = mixed.law(name, **conditions)
        kept = np.array([conditions[name](value) for value in values])
        check_frequencies(drawn[name], values[kept], p[kept])


def test_ranges_of_counts_and_dates_include_their_ends(mixed):
    first, last = pd.Timestamp("2020-02-01"), pd.Timestamp("2020-02-03")
    drawn = mixed.est.sample(600, 0, given={"visits": (1, 3), "day": (first, last)})
    assert set(drawn["visits"]) == {1, 2, 3}
    assert set(drawn["day"]) == set(pd.date_range(first, last))
    values, p = mixed.law(
        "visits",
        visits=lambda x: 1 <= x <= 3,
        day=lambda x: 18293 <= x <= 18295,
    )
    kept = (values >= 1) & (values <= 3)
    check_frequencies(drawn["visits"], values[kept], p[kept])


def test_ranges_beyond_the_data_are_respected(mixed):
    top = mixed.learned["visits"].max()
    drawn = mixed.est.sample(50, 0, given={"visits": (top + 5, None)})
    assert (drawn["visits"] >= top + 5).all()
    assert (drawn["visits"] % 1 == 0).all()


def test_draws_repeat_with_their_seed(mixed):
    first, again, other = (mixed.est.sample(5, seed, given={"colour": "red"}) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    assert mixed.est.sample(3, 0, given={"colour": "red"}, rounded=False)["visits"].dtype == float


def test_rows_of_other_libraries_and_arrays():
    array = np.random.default_rng(0).normal(size=(60, 2))
    est = Roundtrip(max_epochs=1, latent_dim=1, random_state=0).fit(array)
    drawn = est.sample(4, 0, given={1: 0.3})
    assert drawn.shape == (4, 2)
    assert (drawn[:, 1] == 0.3).all()
    est.fit(pl.DataFrame(array, schema=["a", "b"]))
    drawn = est.sample(2, 0, given=pl.DataFrame({"b": [0.1, 0.2]}))
    assert isinstance(drawn, pl.DataFrame)
    assert drawn["b"].to_list() == [0.1, 0.1, 0.2, 0.2]


def test_missing_cells_can_be_part_of_what_is_drawn():
    table = MixedTable().learned[["height", "visits"]].astype({"visits": "Int64"})
    table.loc[::3, "visits"] = None
    est = Roundtrip(missing="model", max_epochs=2, latent_dim=1, random_state=0).fit(table)
    drawn = est.sample(300, 0, given={"height": 170.0})
    assert 0.1 < drawn["visits"].isna().mean() < 0.6
    drawn = est.sample(50, 0, given={"visits": (2, None)})
    assert (drawn["visits"] >= 2).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"price": 1}, r"given names 'price', but the columns are \['height'"),
        ({}, "given must name at least one column"),
        ("height", "given must be a mapping from columns to conditions or a DataFrame, got str"),
        ({"height": "tall"}, r"given\['height'\] = 'tall' is no value of the column, a number"),
        ({"height": (180, 170)}, r"given\['height'\]: the range from 180 to 170 is empty"),
        ({"height": (170, 170)}, "the range from 170 to 170 is empty"),
        ({"height": (None, None)}, "one end may be None"),
        ({"height": (1, 2, 3)}, "must be a range"),
        ({"height": [170, 180]}, "a list is for levels of categories"),
        ({"height": np.inf}, "must be finite"),
        ({"height": None}, r"given\['height'\] is missing; leave the column out"),
        ({"visits": (1.2, 1.8)}, r"given\['visits'\]: no value of the column lies in the range"),
        ({"colour": "pink"}, r"given\['colour'\]: there is no level 'pink', only"),
        ({"colour": 3}, r"given\['colour'\] = 3 is no value of the column"),
        ({"colour": ("blue", "red")}, "levels without an order have no range"),
        ({"colour": []}, "must have at least one level"),
        ({"size": ("L", "S")}, "the range from 'L' to 'S' is empty"),
        ({"day": "soon"}, "is no value of the column, a date"),
    ],
)
def test_bad_conditions_are_refused(mixed, given, message):
    with pytest.raises(ValueError, match=message):
        mixed.est.sample(2, 0, given=given)


def test_conditions_that_the_model_finds_impossible_are_refused(numbers):
    with pytest.raises(ValueError, match="given= has no probability under the model: its cond"):
        numbers.est.sample(2, given={"a": (1e4, None), "b": (None, -1e4)})


def test_bad_tables_of_conditions_are_refused(mixed):
    rows = mixed.learned.iloc[:2]
    with pytest.raises(ValueError, match="nothing is left to draw"):
        mixed.est.sample(2, given=rows)
    with pytest.raises(ValueError, match="has a level of column 'colour' that fit has not seen"):
        mixed.est.sample(2, given=pd.DataFrame({"colour": ["pink"]}))
    with pytest.raises(ValueError, match="no observed cell"):
        mixed.est.sample(2, given=pd.DataFrame({"height": [np.nan]}))
    with pytest.raises(ValueError, match="unseen columns: price"):
        mixed.est.sample(2, given=pd.DataFrame({"height": [170.0], "price": [1]}))


def test_conditional_densities_take_no_conditions_on_columns():
    X = np.random.default_rng(0).normal(size=(60, 2))
    est = Roundtrip(max_epochs=1, latent_dim=1, random_state=0).fit(X, context=["a", "b"] * 30)
    with pytest.raises(ValueError, match="tables without a context"):
        est.sample(2, given={0: 0.1})
