"""Fits of tables with categories, ordered levels, counts and missing cells, against the truth."""

import numpy as np
import pandas as pd
import pytest
from conftest import TINY
from mixed_oracles import MixedMixture, missing_at_random, missing_by_height, with_holes
from scipy.special import logsumexp

from roundtrip import Roundtrip, load

ORACLE = MixedMixture()


def gap_to_truth(est, table):
    """Mean log density less the true one, and its standard error."""
    result = est.density(table, tol=0.1)
    error = result.log_density - ORACLE.log_density(table)
    return error.mean(), error.std(ddof=1) / np.sqrt(len(table)), result


def incomplete(name, table, seed):
    if name == "complete":
        return table
    if name == "at random":
        return missing_at_random(table, 0.3, seed)
    return missing_by_height(table, seed)


PATTERNS = ("complete", "at random", "by height")


@pytest.fixture(scope="module")
def quick():
    """A quick fit of an incomplete table."""
    table = missing_at_random(ORACLE.table(1_500, seed=0), 0.2, seed=1)
    return Roundtrip(random_state=0, max_epochs=8).fit(table)


def test_a_quick_fit_is_below_the_truth_and_not_far(quick):
    mean, error, result = gap_to_truth(quick, ORACLE.table(300, seed=2))
    assert result.converged.mean() > 0.95
    assert -0.6 < mean < 3 * error


def test_samples_look_like_the_table(quick):
    drawn = quick.sample(400, random_state=0)
    table = missing_at_random(ORACLE.table(10, seed=0), 0.2, seed=1)
    assert list(drawn.columns) == list(table.columns)
    assert drawn.dtypes.to_dict() == table.dtypes.to_dict()
    assert not drawn.isna().any().any()
    assert set(drawn["colour"]) == {"red", "green", "blue", "grey"}
    assert drawn["visits"].min() >= 0


def test_files_keep_densities_and_samples(quick, tmp_path):
    table = missing_at_random(ORACLE.table(20, seed=3), 0.3, seed=4)
    quick.save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    np.testing.assert_array_equal(again.score_samples(table), quick.score_samples(table))
    pd.testing.assert_frame_equal(again.sample(9, random_state=1), quick.sample(9, random_state=1))


def test_log_densities_of_parts_add_up_to_those_of_levels(quick):
    """The probability of all levels of a category, summed, is the density without it."""
    rows = ORACLE.table(5, seed=5)
    whole = sum(
        np.exp(quick.density(rows.assign(colour=level), tol=0.02).log_density)
        for level in ("red", "green", "blue", "grey")
    )
    mask = np.zeros(rows.shape, dtype=bool)
    mask[:, list(rows.columns).index("colour")] = True
    part = np.exp(quick.density(with_holes(rows, mask), tol=0.02).log_density)
    reserved = quick.columns_["colour"].reserved
    np.testing.assert_allclose(whole, (1 - reserved) * part, rtol=0.12)


def test_a_row_is_scored_alone_as_among_others(quick):
    table = missing_at_random(ORACLE.table(12, seed=6), 0.4, seed=7)
    together = quick.score_samples(table)
    alone = np.concatenate([quick.score_samples(table.iloc[[row]]) for row in range(12)])
    np.testing.assert_array_equal(together, alone)


def test_a_level_that_fit_has_not_seen_is_unlikely_but_scored(quick):
    rows = ORACLE.table(3, seed=8)
    strange = rows.assign(colour="violet")
    assert np.all(quick.score_samples(strange) < quick.score_samples(rows))
    assert np.isfinite(quick.score_samples(strange)).all()


def test_a_mean_counts_rows_with_the_same_missing_cells_once(quick):
    table = missing_at_random(ORACLE.table(30, seed=9), 0.4, seed=10)
    once = quick.density_mean(table, tol=0.05)
    twice = quick.density_mean(pd.concat([table, table]), tol=0.05)
    assert abs(once.mean - twice.mean) < 4 * np.hypot(once.std_error, twice.std_error)
    assert twice.rows == 2 * once.rows
    assert twice.n_evaluations <= once.n_evaluations


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(4))
def test_all_observed_cells_of_a_column_may_be_held_out(seed):
    table = pd.DataFrame({"a": 1.3 * np.arange(4), "b": [2.5, np.nan, np.nan, np.nan]})
    est = Roundtrip(**TINY | {"random_state": seed}, latent_dim=1).fit(table)
    assert np.isfinite(est.score_samples(table)).all()


def test_other_objectives_refuse_mixed_tables():
    table = ORACLE.table(50, seed=0)
    for objective in ("adversarial", "hybrid"):
        with pytest.raises(ValueError, match="colour, size"):
            Roundtrip(objective=objective).fit(table)


def test_missing_cells_can_be_part_of_the_model():
    table = missing_by_height(ORACLE.table(1_500, seed=0), seed=1)
    est = Roundtrip(random_state=0, missing="model", max_epochs=8).fit(table)
    drawn = est.sample(3_000, random_state=0)
    tall = drawn["height"] > 178
    low = drawn["height"] < 165
    assert drawn["weight"].isna()[tall].mean() > 0.35
    assert drawn["weight"].isna()[low].mean() < 0.3
    assert not drawn["height"].isna().any()
    # The pattern is part of the density: a missing weight is likelier for tall people.
    rows = ORACLE.table(1, seed=0).loc[[0, 0]].reset_index(drop=True)
    rows = rows.assign(height=[190.0, 160.0])
    mask = np.zeros(rows.shape, dtype=bool)
    mask[:, list(rows.columns).index("weight")] = True
    holes = est.density(with_holes(rows, mask), tol=0.02).log_density
    # The density of the observed cells and an observed weight, summed over all weights.
    weights = np.arange(20.0, 160.0, 2.0)
    every = rows.loc[rows.index.repeat(len(weights))].assign(weight=np.tile(weights, 2))
    observed = est.density(every, tol=0.05).log_density.reshape(2, -1)
    log_odds = holes - logsumexp(observed, axis=1) - np.log(2.0)
    assert log_odds[0] > log_odds[1] + 0.5


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
def test_held_out_rows_are_nearly_as_likely_as_under_the_truth(pattern):
    table = incomplete(pattern, ORACLE.table(30_000, seed=0), seed=1)
    est = Roundtrip(random_state=0).fit(table, max_time=120)
    for rows in (ORACLE.table(4_000, seed=2), incomplete(pattern, ORACLE.table(4_000, seed=2), 3)):
        mean, error, result = gap_to_truth(est, rows)
        print(f"{pattern}: {mean:.4f} ± {error:.4f} nats, {result.converged.mean():.3f} converged")
        assert -0.05 < mean < 3 * error


@pytest.mark.slow
def test_names_of_levels_change_nothing_but_the_randomness_of_the_fit():
    table = ORACLE.table(6_000, seed=0)
    renamed = table.assign(
        colour=table["colour"].map(
            dict(zip(("red", "green", "blue", "grey"), ("Z", "b", "A", "y"), strict=True))
        )
    )
    test = ORACLE.table(2_000, seed=1)
    fits = [
        Roundtrip(random_state=seed).fit(rows)
        for seed, rows in ((0, table), (1, table), (0, renamed))
    ]
    tests = [
        test,
        test,
        test.assign(
            colour=test["colour"].map({"red": "Z", "green": "b", "blue": "A", "grey": "y"})
        ),
    ]
    means = [est.score(rows) for est, rows in zip(fits, tests, strict=True)]
    assert abs(means[2] - means[0]) < max(0.02, 3 * abs(means[1] - means[0]))
