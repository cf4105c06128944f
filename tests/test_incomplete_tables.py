"""The benchmark of incomplete tables: removal of cells, imputation and the page."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import incomplete_tables_data
from incomplete_tables import COMPLETE, INCOMPLETE, METHODS, cases, page
from incomplete_tables_data import REMOVED, roundings, split_of
from incomplete_tables_imputation import IMPUTATIONS, MICEFOREST, on_grid

ROWS = 600


def table(home=None):
    rng = np.random.default_rng(0)
    exact = rng.normal(size=ROWS)
    return pd.DataFrame(
        {
            "exact": exact,
            "like it": exact + 0.01 * rng.normal(size=ROWS),
            "whole": rng.poisson(4, size=ROWS),
            "text": np.where(exact > 0, "high", "low"),
        }
    )


@pytest.fixture
def split(monkeypatch, tmp_path):
    monkeypatch.setitem(incomplete_tables_data.TABLES, "made", table)
    return split_of("made", 0, tmp_path)


def test_only_training_cells_are_removed(split):
    assert len(split.test) == ROWS // 5
    assert len(split.complete) == len(split.incomplete) == ROWS - ROWS // 5
    assert not split.test.isna().any().any()
    assert split.incomplete.isna().to_numpy().mean() == pytest.approx(REMOVED, abs=0.03)
    known = split.incomplete.notna()
    assert (split.incomplete == split.complete)[known].equals(known[known])
    assert (split.incomplete.dtypes == split.test.dtypes).all()
    assert split.incomplete["whole"].dtype == np.float64
    rows = pd.concat([split.complete, split.test]).sort_values("exact")
    assert rows["exact"].tolist() == sorted(table()["exact"])


@pytest.mark.parametrize("name", [name for name in IMPUTATIONS if name != MICEFOREST])
def test_imputations_fill_missing_cells_alone_and_keep_grids(name, split):
    grids = roundings(split.incomplete)
    filled = IMPUTATIONS[name](split.incomplete, grids, 0, None)
    assert not filled.isna().any().any()
    assert filled.dtypes.equals(split.incomplete.dtypes)
    known = split.incomplete.notna()
    assert (filled == split.incomplete)[known].equals(known[known])
    assert grids["whole"].step == roundings(filled)["whole"].step == 1
    assert set(filled["text"]) == {"high", "low"}
    holes = split.incomplete["like it"].isna() & split.incomplete["exact"].notna()
    error = (filled["like it"] - split.complete["like it"])[holes]
    assert error.std() < (0.1 if name == "IterativeImputer" else 1.2)


def test_imputed_values_beyond_the_known_ones_become_their_ends(split):
    def impute(frame, seed, python):
        return frame.fillna({"exact": 0.0, "like it": 0.0, "whole": 1e6, "text": "low"})

    filled = on_grid(impute)(split.incomplete, roundings(split.incomplete), 0, None)
    assert filled["whole"].max() == split.incomplete["whole"].max()


def test_miceforest_is_left_out_without_its_environment():
    chosen = {"budget": 1.0, "methods": METHODS}
    without = cases("CASP", 0, None, **chosen, miceforest=None)
    assert [case["method"] for case in without] == [m for m in METHODS if m != MICEFOREST]
    assert len(cases("CASP", 0, None, **chosen, miceforest=Path("python"))) == len(METHODS)


def record(method, log_density, *, found=1.0):
    return {
        **{"table": "CASP", "split": 0, "method": method, "budget": 120.0},
        **{"log_density": log_density, "std_error": 0.01, "failed_rows": 2, "epochs": 3},
        **{"impute_seconds": 4.0, "fit_seconds": 120.0, "cpu_seconds": 99.0, "score_seconds": 5.0},
        **{"stopped_by": "max_time", "threads": 1, "cores": 2, "torch": "2.6"},
        "warnings": [],
        **{"steps": {"F8": 1.0}, "found_steps": {"F8": found}},
    }


def test_page_says_who_is_ahead_and_which_steps_differ():
    records = [
        record(COMPLETE, -20.0),
        record("mean", -26.0, found=0.5),
        record(INCOMPLETE, -21.5),
        record("IterativeImputer", -24.0),
    ]
    text = page([record("mean", -99.0), *records])
    assert "-99" not in text
    assert "2.50 nats ahead of the best imputation (IterativeImputer), at least 1" in text
    assert "the missing cells cost 1.50 nats" in text
    assert f"Not there: {MICEFOREST}." in text
    assert "| CASP | F8 | 1 | mean (0.5) |" in text
    lines = [line for line in text.splitlines() if line.startswith("| CASP | 0 |")]
    assert [line.split(" | ")[2] for line in lines] == [
        *(COMPLETE, INCOMPLETE, "mean", "IterativeImputer")
    ]
    assert "| 4.50 | 6.00 |" in lines[2]


def test_page_without_the_fit_of_the_incomplete_table_has_no_verdict():
    assert "not complete." in page([record(COMPLETE, -20.0)])
