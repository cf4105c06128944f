"""Marginals, conditionals and imputation from one fitted density."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from conftest import TINY
from fitted_oracles import GaussianTable
from mixed_oracles import MixedMixture, missing_at_random

from roundtrip import Roundtrip
from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder

ORACLE = MixedMixture()
COVARIANCE = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 1.0]])


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=80))


@pytest.fixture(scope="module")
def mixed():
    return Roundtrip(random_state=0, max_epochs=8).fit(ORACLE.table(1_500, seed=0))


@pytest.fixture(scope="module")
def gaussian():
    rows = np.random.default_rng(0).multivariate_normal(np.zeros(3), COVARIANCE, size=4_000)
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    return Roundtrip(latent_dim=3, max_epochs=12, random_state=0).fit(table)


def test_columns_that_are_left_out_are_integrated_out(mixed):
    rows = ORACLE.table(20, seed=1)
    part = mixed.density(rows[["height", "colour"]])
    holes = rows.assign(weight=np.nan, size=None, visits=np.nan)[rows.columns]
    np.testing.assert_array_equal(part.log_density, mixed.density(holes).log_density)
    truth = ORACLE.log_density(holes)
    assert abs(np.mean(part.log_density - truth)) < 0.3


def test_indicators_of_columns_that_are_left_out_are_integrated_out(mixed):
    table = missing_at_random(ORACLE.table(800, seed=0), 0.2, seed=1)
    est = Roundtrip(random_state=0, max_epochs=3, missing="model").fit(table)
    rows = ORACLE.table(3, seed=2)
    whole = est.density(rows[["height", "weight"]], tol=0.03)
    present = est.density(rows[["height"]], tol=0.03)
    # log p(height, present): adding a column that may be missing, too, costs its indicator.
    assert np.isfinite(whole.log_density).all()
    assert np.isfinite(present.log_density).all()


def test_conditional_probabilities_of_levels_sum_to_one(mixed):
    row = ORACLE.table(1, seed=3)
    total = 0
    for level in ("red", "green", "blue", "grey"):
        each = mixed.density(
            row.assign(colour=level), given=["height", "weight", "size", "visits"], tol=0.02
        )
        total += np.exp(each.log_density[0])
    assert total == pytest.approx(1 - mixed.columns_["colour"].reserved, abs=0.1)


def test_joint_density_is_the_product_of_part_and_conditional(mixed):
    rows = ORACLE.table(10, seed=4)
    joint = mixed.density(rows)
    part = mixed.density(rows[["weight", "size"]])
    conditional = mixed.density(rows, given=["weight", "size"])
    gap = joint.log_density - part.log_density - conditional.log_density
    error = np.sqrt(joint.std_error**2 + part.std_error**2 + conditional.std_error**2)
    assert (np.abs(gap) < 4 * error).all()
    assert (conditional.std_error >= joint.std_error).all()


def test_conditional_densities_follow_the_closed_form(gaussian):
    rng = np.random.default_rng(1)
    rows = rng.multivariate_normal(np.zeros(3), COVARIANCE, size=40)
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    found = gaussian.density(table[["a", "b"]], given=["b"]).log_density
    variance = 1 - 0.8**2
    truth = -0.5 * (rows[:, 0] - 0.8 * rows[:, 1]) ** 2 / variance
    truth -= 0.5 * np.log(2 * np.pi * variance)
    assert np.abs(found - truth).mean() < 0.25


def test_means_of_missing_cells_are_conditional_expectations(gaussian):
    rng = np.random.default_rng(2)
    rows = rng.multivariate_normal(np.zeros(3), COVARIANCE, size=60)
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    table.loc[::2, "a"] = np.nan
    filled = gaussian.impute(table)
    weights = np.linalg.solve(COVARIANCE[1:, 1:], COVARIANCE[1:, 0])
    expected = rows[::2, 1:] @ weights
    assert np.abs(filled["a"].to_numpy()[::2] - expected).mean() < 0.15
    median = gaussian.impute(table, how="median")["a"].to_numpy()[::2]
    assert np.abs(median - expected).mean() < 0.2
    pd.testing.assert_frame_equal(filled.iloc[1::2], table.iloc[1::2])


def test_draws_keep_the_spread_and_the_correlation(gaussian):
    rng = np.random.default_rng(3)
    rows = rng.multivariate_normal(np.zeros(3), COVARIANCE, size=300)
    table = pd.DataFrame(rows, columns=["a", "b", "c"])
    table["a"] = np.nan
    drawn = gaussian.impute(table, draws=3, random_state=0)
    assert len(drawn) == 3
    for each in drawn:
        assert each["a"].std() == pytest.approx(1, abs=0.2)
        assert each[["a", "b"]].corr().iloc[0, 1] == pytest.approx(0.8, abs=0.12)
    assert not drawn[0].equals(drawn[1])
    again = gaussian.impute(table, draws=3, random_state=0)
    pd.testing.assert_frame_equal(drawn[2], again[2])


def test_imputed_tables_look_like_the_table(mixed):
    table = missing_at_random(ORACLE.table(30, seed=5), 0.3, seed=6)
    table.index = [f"r{number}" for number in range(30)]
    for each in (mixed.impute(table), *mixed.impute(table, draws=2, random_state=0)):
        assert not each.isna().any().any()
        assert each.index.equals(table.index)
        assert each["size"].dtype == table["size"].dtype
        known = table.notna()
        assert (each.astype(object)[known] == table.astype(object)[known]).to_numpy()[known].all()
        assert set(each["colour"]) <= {"red", "green", "blue", "grey"}
        assert (each["visits"] % 1 == 0).all()


def test_complete_tables_stay_as_they_are(mixed):
    table = ORACLE.table(5, seed=0)
    pd.testing.assert_frame_equal(mixed.impute(table), table)
    assert len(mixed.impute(table, draws=3)) == 3


def test_a_category_becomes_its_likeliest_level(mixed):
    tall = pd.DataFrame({
        "height": [182.0], "weight": [95.0], "colour": [None],
        "size": pd.Categorical(["huge"], ["small", "medium", "large", "huge"], ordered=True),
        "visits": [12],
    })  # fmt: skip
    assert mixed.impute(tall)["colour"].tolist() == ["blue"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["price"], "given must name some"),
        ([], "given must name some"),
        (["height", "weight", "colour", "size", "visits"], "but not all"),
    ],
)
def test_bad_conditions_are_refused(mixed, given, message):
    with pytest.raises(ValueError, match=message):
        mixed.density(ORACLE.table(3, seed=0), given=given)


def test_questions_that_make_no_sense_are_refused(mixed):
    rows = ORACLE.table(3, seed=0)
    with pytest.raises(ValueError, match="no observed cell beside"):
        mixed.density(rows[["height"]], given=["height"])
    with pytest.raises(ValueError, match="unseen columns: price"):
        mixed.density(rows[["height"]].assign(price=1.0))
    with pytest.raises(ValueError, match="how must be"):
        mixed.impute(rows, how="mode")
    with pytest.raises(ValueError, match="missing columns"):
        mixed.score_samples(rows[["height"]])  # scikit-learn's methods take whole tables


@pytest.mark.parametrize("kind", ["images", "context"])
def test_images_and_conditional_densities_have_no_parts(kind, rng):
    X = rng.random((40, 4, 4, 1)) if kind == "images" else rng.random((40, 2))
    context = ["a", "b"] * 20 if kind == "context" else None
    est = Roundtrip(**TINY).fit(X, context=context)
    questions = {
        "impute": lambda: est.impute(X),
        "conditional": lambda: est.conditional(X, 0),
        "probability": lambda: est.probability({0: (0, 1)}),
        r"sample\(given=...\)": lambda: est.sample(2, given={0: 0.5}),
    }
    for name, question in questions.items():
        with pytest.raises(
            ValueError, match=f"{name} is for densities of tables without a context"
        ):
            question()
    if kind == "images":
        with pytest.raises(ValueError, match="given= is for tables, and these are images"):
            est.density(X, given=[0])


def test_conditions_that_contradict_each_other_have_no_probabilities():
    est = GaussianTable(1, 3).est
    with pytest.raises(ValueError, match="given= has no probability under the model"):
        est.probability({"c": (0, 1)}, given={"a": (1e4, None), "b": (None, -1e4)})


@pytest.mark.parametrize("draws", [0, 1.5, "five"])
def test_numbers_of_completed_tables_are_checked(mixed, draws):
    with pytest.raises((ValueError, TypeError), match="draws"):
        mixed.impute(ORACLE.table(3, seed=0), draws=draws)


def test_rows_without_observed_cells_are_filled_given_nothing(gaussian):
    table = pd.DataFrame(np.full((2, 3), np.nan), columns=["a", "b", "c"])
    table.loc[1, "b"] = 1.0
    filled = gaussian.impute(table)
    sample = gaussian.sample(4_000, random_state=0).mean()
    assert np.abs(filled.iloc[0] - sample).max() < 0.15
    drawn = gaussian.impute(pd.concat([table.head(1)] * 300), draws=1, random_state=0)[0]
    assert drawn.std().between(0.8, 1.2).all()
    assert drawn.corr().loc["a", "b"] == pytest.approx(0.8, abs=0.15)
    with pytest.raises(ValueError, match="no observed cell"):
        gaussian.density(table)
