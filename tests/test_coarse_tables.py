"""The benchmark of coarsely rounded tables: rounding, chi-square tests, resuming and the page."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import table_runs
from coarse_tables import (
    SHARES,
    chi_square,
    differing,
    merged,
    of_columns,
    page,
    per_degree,
    rounded_on_purpose,
    rows_of,
)

ROOT = Path(__file__).parent.parent


def test_columns_are_rounded_to_their_steps_unless_they_are_coarser_already():
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(5, 3, 500), rng.integers(2, size=500)], axis=1)
    rounded, step = rounded_on_purpose(X, np.array([0.0, 1.0]), rng)
    assert SHARES[0] <= step[0] / X[:, 0].std() <= SHARES[1]
    assert rounded[:, 0] / step[0] == pytest.approx(np.rint(rounded[:, 0] / step[0]))
    assert np.abs(rounded[:, 0] - X[:, 0]).max() == pytest.approx(step[0] / 2, rel=0.05)
    assert step[1] == 1
    assert (rounded[:, 1] == X[:, 1]).all()


def test_known_steps_fit_the_table_and_splits_differ():
    train, test, step = rows_of("iris", 0, None)
    assert (len(train), len(test)) == (120, 30)
    assert train / step == pytest.approx(np.rint(train / step))
    assert (rows_of("iris", 1, None)[1] != test).any()


def test_steps_do_not_depend_on_the_split():
    first, second = (rows_of("wine", split, None)[2] for split in (0, 1))
    assert (first == second).all()
    assert (first > 0).all()


def test_neighbours_are_merged_until_enough_are_expected():
    expected = np.array([3, 3, 1, 9, 2, 6, 4])
    assert merged(expected).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert np.bincount(merged(expected), expected).min() >= 5
    assert merged(np.array([1.0, 2.0])).tolist() == [0, 0]


def test_statistic_of_two_values():
    """30 and 10 where 20 and 20 are expected: 100 / 20 + 100 / 20 = 10."""
    values, reference = np.repeat([0.3, 0.4], [30, 10]), np.repeat([0.3, 0.4], 500)
    assert chi_square(values, reference, 0.1) == (pytest.approx(10), 1)
    assert chi_square(values[:9], reference, 0.1)[1] == 0


def test_columns_differ_if_their_frequencies_do():
    rng = np.random.default_rng(0)
    test, reference = np.rint(rng.normal(0, 4, (300, 100))), np.rint(rng.normal(0, 4, (50_000, 1)))
    reference, step = np.repeat(reference, 100, axis=1), np.ones(100)
    right = of_columns(test, reference, step)
    degrees = sum(each for _, each in right)
    assert per_degree(right) == pytest.approx(1, abs=5 * np.sqrt(2 / degrees))
    assert differing(right)[0] <= 5  # 1 is expected
    assert differing(of_columns(test[:, :3] + 2, reference[:, :3], step[:3])) == (3, 3)


def test_known_runs_are_not_computed_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmark", "--splits", "2"])
    computed = []

    def measure(table, split, folder):
        computed.append((table, split))
        if len(computed) == 2:
            raise KeyboardInterrupt
        return {"score": 1.0}

    def run():
        table_runs.main(
            "some-tables",
            "",
            tables=["iris"],
            splits=1,
            cases=lambda table, split, folder: [{"table": table, "split": split}],
            measure=measure,
            shown="score",
            page=lambda records: f"{len(records)} records\n",
        )

    with pytest.raises(KeyboardInterrupt):
        run()
    run()
    assert computed == [("iris", 0), ("iris", 1), ("iris", 1)]
    monkeypatch.setattr(sys, "argv", ["benchmark", "--again"])
    run()
    assert computed[3:] == [("iris", 0)]
    assert Path("results/some-tables/some-tables.md").read_text() == "2 records\n"


def record(table, split, loss, **others):
    return {
        "table": table,
        "split": split,
        "loss": loss,
        "loss_std_error": 0.01,
        "train_rows": 1000,
        "test_rows": 30,
        "features": 4,
        "recognised": 3,
        "converged": 1.0,
        "samples": [[30.0, 10], [5.0, 5], [1.0, 0]],
        "training": [[5.0, 5], [4.0, 4], [0.0, 0]],
        "fit_seconds": 30.2,
        "score_seconds": 2.0,
        "threads": 1,
        "cores": 2,
        "torch": "2",
        **others,
    }


def test_page_shows_the_newest_record_and_counts_tables_below_the_bar():
    old = record("iris", 0, 9.0)
    text = page([record("cars", 0, 0.31, samples=[[3.0, 0]]), old, record("iris", 0, 0.1)])
    assert "| iris | 0 | 1,000 | 4 | 3 of 4 | 0.100 ± 0.010 | 100.0% |" in text
    assert "below 0.3 on 1 of 2" in text
    assert "| iris | 0 | 30 | 50% | 0% | 2.40 | 1.00 | 30 / 2 |" in text
    assert "| cars | 0 | 30 |  | 0% | nan | 1.00 | 30 / 2 |" in text
    assert "1 of 2 differ from samples and 0 of 4 differ from training rows" in text


def test_page_follows_from_the_numbers():
    folder = ROOT / "results" / "coarse-tables"
    records = json.loads((folder / "runs.json").read_text())
    assert page(records) == (folder / "coarse-tables.md").read_text()
