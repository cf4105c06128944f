"""The benchmark of imputation: hidden cells, methods, figures and the page."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import imputation_methods
import parts_data
from imputation import cases
from imputation_methods import METHODS, MICEFOREST, ROUNDTRIP, Imputed, completed
from imputation_page import page, ranks_of
from imputation_scores import MARGINAL_WEIGHT, crps, energy_distance, inside, log_scores, scores
from incomplete_tables_data import roundings
from parts_data import MAR, SHARES, Table, hidden_cells, rows_of

ROWS = 300


def table(home=None):
    rng = np.random.default_rng(0)
    exact = rng.normal(size=ROWS)
    return pd.DataFrame(
        {
            "exact": exact,
            "like it": exact + 0.01 * rng.normal(size=ROWS),
            "whole": rng.poisson(4, size=ROWS),
            "text": np.where(exact > 0, "high", "low"),
            "other": rng.choice(["a", "b", "c"], size=ROWS),
        }
    )


@pytest.fixture
def truth(monkeypatch, tmp_path):
    monkeypatch.setitem(parts_data.TABLES, "made", Table(table, "exact"))
    parts_data._read.cache_clear()
    return rows_of("made", 0, tmp_path)


def test_rows_are_the_same_in_another_order_for_each_seed(truth, tmp_path):
    other = rows_of("made", 1, tmp_path)
    assert not truth.equals(other)
    assert sorted(truth["exact"]) == sorted(other["exact"]) == sorted(table()["exact"])
    assert truth["whole"].dtype == np.float64


@pytest.mark.parametrize("pattern", SHARES)
def test_hidden_cells_have_their_share_and_leave_one_per_row(pattern, truth):
    hidden = hidden_cells(truth, pattern, 0)
    columns = hidden.mean(axis=0)
    assert not hidden.all(axis=1).any()
    if pattern == MAR:
        assert (columns == 0).sum() == 2
    assert columns[columns > 0] == pytest.approx(SHARES[pattern], abs=0.05)


def test_at_random_means_that_known_columns_decide():
    rng = np.random.default_rng(0)
    truth = pd.DataFrame(rng.normal(size=(5000, 4)), columns=list("abcd"))
    hidden = hidden_cells(truth, MAR, 0)
    known = hidden.sum(axis=0) == 0
    assert known.sum() == 1
    decider = truth.loc[:, known].to_numpy()[:, 0]
    for column, cells in zip(truth.loc[:, ~known], hidden[:, ~known].T, strict=True):
        assert abs(np.corrcoef(decider, cells)[0, 1]) > 0.4
        assert abs(np.corrcoef(truth[column], cells)[0, 1]) < 0.05


@pytest.mark.parametrize("name", [m for m in METHODS if m not in (MICEFOREST, ROUNDTRIP)])
def test_methods_complete_hidden_cells_alone(name, truth, monkeypatch):
    monkeypatch.setattr(imputation_methods, "TREES", 20)
    monkeypatch.setattr(imputation_methods, "DRAWS", 3)
    incomplete = truth.mask(hidden_cells(truth, "20 % MCAR", 0))
    imputed = completed(name, incomplete, roundings(incomplete), 0, None, None)
    known = incomplete.notna()
    for filled in (imputed.point, *imputed.draws):
        assert not filled.isna().any().any()
        assert (filled == incomplete)[known].equals(known[known])
        assert set(filled["text"]) == {"high", "low"}
        assert filled["whole"].equals(filled["whole"].round())
    holes = incomplete["like it"].isna() & incomplete["exact"].notna()
    error = (imputed.point["like it"] - truth["like it"])[holes]
    assert error.std() < {"IterativeImputer": 0.1, "mean": 1.2}.get(name, 0.9)
    for column, said in imputed.probabilities.items():
        rows = incomplete[column].isna()
        assert said[rows].sum(axis=1).to_numpy() == pytest.approx(1)
        likeliest = said[rows].idxmax(axis=1)
        assert (likeliest == imputed.point.loc[rows, column]).mean() > 0.95


def test_crps_is_that_of_the_distribution_of_the_draws():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=20_000)
    exact = truth * (2 * norm.cdf(truth) - 1) + 2 * norm.pdf(truth) - 1 / np.sqrt(np.pi)
    for number in (2, 19):
        found = crps(rng.normal(size=(number, len(truth))), truth)
        assert found.mean() == pytest.approx(exact.mean(), abs=0.02)
    assert crps(np.zeros((1, 2)), np.array([-1.0, 3.0])).tolist() == [1, 3]


@pytest.mark.parametrize("whole", [False, True])
def test_draws_of_the_truth_hold_it_nine_times_of_ten(whole):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 20_000))
    if whole:
        values = values.round()
    assert inside(values[1:], values[0], rng).mean() == pytest.approx(0.9, abs=0.01)


def test_energy_distance_is_that_of_rows_in_any_order(truth):
    shuffled = truth.sample(frac=1, random_state=0)
    names = ["text", "other"]
    assert energy_distance(shuffled, truth, names) == pytest.approx(0, abs=1e-9)
    moved = energy_distance(truth.assign(exact=truth["exact"] + 1), truth, names)
    assert moved > energy_distance(truth.assign(exact=truth["exact"] + 0.5), truth, names) > 0
    # Without numbers, two tables of one level each are at a distance of 1, twice.
    one = pd.DataFrame({"text": ["a"] * 3 + ["b"] * 3})
    assert energy_distance(one.assign(text="a"), one, ["text"]) == pytest.approx(2 / 4)


def test_log_scores_mix_the_frequencies_of_known_cells():
    known, true = pd.Series(["a", "a", "b"]), pd.Series(["b", "c"])
    said = pd.DataFrame({"a": [0.5, 1.0], "b": [0.5, 0.0]})
    first, second = np.exp(log_scores(said, known, true))
    assert first == pytest.approx(0.5 * (1 - MARGINAL_WEIGHT) + MARGINAL_WEIGHT * 2 / 6)
    assert second == pytest.approx(MARGINAL_WEIGHT / 6)


def test_the_truth_has_the_best_figures(truth):
    incomplete = truth.mask(hidden_cells(truth, "20 % MCAR", 0))
    found = scores(truth, incomplete, Imputed(truth), target="exact", seed=0)
    assert (found["rmse"], found["crps"], found["accuracy"]) == (0, 0, 1)
    assert found["energy"] == pytest.approx(0, abs=1e-9)
    assert found["coverage"] is None
    assert found["log_score"] > np.log(1 - MARGINAL_WEIGHT)
    assert found["downstream"] > 0.95
    shifted = truth.assign(exact=truth["exact"] + 1)
    worse = scores(truth, incomplete, Imputed(shifted), target="exact", seed=0)
    hidden = (
        incomplete["exact"].isna().sum()
        / incomplete[["exact", "like it", "whole"]].isna().sum().sum()
    )
    assert worse["mse"] == pytest.approx(hidden / truth["exact"].var(ddof=0))


def test_miceforest_is_left_out_without_its_environment():
    chosen = {"rows": 9, "patterns": [MAR], "methods": list(METHODS), "budget": 1.0}
    without = cases("CASP", 0, None, **chosen, miceforest=None)
    assert [case["method"] for case in without] == [m for m in METHODS if m != MICEFOREST]
    assert len(cases("CASP", 0, None, **chosen, miceforest=Path("python"))) == len(METHODS)
    assert next(case for case in without if "budget" in case)["method"] == ROUNDTRIP


def record(method, value, *, split=0, coverage=None):
    return {
        **{"table": "breast cancer", "pattern": "50 % MCAR", "method": method, "split": split},
        **{"rows": 2000, "table_rows": 569, "columns": 30, "hidden": 0.5, "seconds": 3.0},
        **{"cpu_seconds": 2.0, "mse": value**2, "rmse": value, "crps": value, "accuracy": None},
        **{"log_score": None, "coverage": coverage, "energy": value / 100, "downstream": -value},
        **{"threads": 1, "cores": 2, "torch": "2.6", "budget": 120.0},
    }


def test_page_ranks_methods_on_common_runs_and_states_the_bars():
    records = [
        record("mean", 9.0),
        record("mean", 1.0),
        record("KNN", 0.7),
        record(ROUNDTRIP, 0.5, coverage=0.91),
        record("mean", 1.0, split=1),
    ]
    assert ranks_of(records[1:], "crps") == {"mean": (3.0, 1), "KNN": (2.0, 1), ROUNDTRIP: (1.0, 1)}
    text = page(records)
    assert "9.0" not in text
    assert "Best mean rank by CRPS: Roundtrip." in text
    assert "on 0 of 0 tables" not in text
    assert "breast cancer 0.910; between 0.87 and 0.93 on 1 of 1." in text
    assert "mean squared error is 0.250" in text
    assert "| mean | 2 | 1.000 | 1.000 | 10.00 |  | -1.000 | 3 / 2 |" in text


def test_page_without_roundtrip_has_no_bars():
    assert "## Bars" not in page([{**record("mean", 1.0)}])
