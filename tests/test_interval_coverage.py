"""The benchmark of conditional intervals: columns, intervals, pooled coverage and the page."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from interval_coverage import SAMPLES, cases, columns_of, intervals, page, pooled

ROOT = Path(__file__).parent.parent


class Line:
    """Stands for a fitted estimator: x is the first covariate plus Gaussian noise."""

    def sample(self, n_samples, random_state, context):
        assert len(context) == n_samples
        noise = np.random.default_rng(random_state).normal(size=(n_samples, 1))
        return context[:, :1] + noise


def test_first_columns_with_many_values_are_predicted():
    rows = np.arange(40)
    X = np.stack([rows, rows % 10, rows % 11, rows, rows], axis=1)
    assert columns_of(X) == [0, 2, 3]
    diabetes = [{"table": "diabetes", "split": 1, "column": j} for j in (0, 2, 3)]  # 1 is the sex
    assert cases("diabetes", 1, None) == diabetes


def test_intervals_follow_the_context_of_each_row():
    centre = np.array([-100.0, 0.0, 7.0])
    low, high = intervals(Line(), np.stack([centre, -centre], axis=1), random_state=0)
    error = 4 * np.sqrt(0.05 * 0.95 / SAMPLES) / norm.pdf(norm.ppf(0.05))
    assert low == pytest.approx(centre + norm.ppf(0.05), abs=error)
    assert high == pytest.approx(centre + norm.ppf(0.95), abs=error)


def record(table, split, column, below, above, **others):
    return {
        "table": table,
        "split": split,
        "column": column,
        "below": below,
        "above": above,
        "test_rows": 100,
        "train_rows": 1200,
        "width": 2.5,
        "fit_seconds": 10.0,
        "threads": 1,
        "cores": 2,
        "torch": "2",
        **others,
    }


def test_coverage_is_over_all_intervals():
    rows = [record("penguins", 0, 0, 3, 7), record("penguins", 0, 1, 60, 0, test_rows=300)]
    coverage, error, number = pooled(rows)
    assert number == 400
    assert coverage == pytest.approx(330 / 400)
    assert error == pytest.approx(np.sqrt(0.825 * 0.175 / 400))


def test_page_shows_the_newest_record_and_counts_tables_within_the_bar():
    records = [
        record("penguins", 0, 0, 50, 50),
        record("penguins", 0, 0, 4, 6),
        record("penguins", 1, 0, 6, 4, width=3.5),
        record("diabetes", 0, 2, 0, 5),
    ]
    text = page(records)
    shown = "| penguins | 1,200 | 2 | 200 | 0.900 ± 0.021 | 0.050 | 0.050 | 3.00 | 10 |"
    assert shown in text
    assert "between 0.86 and 0.94 on 1 of 2 tables" in text
    assert "| diabetes | 2 | 1 | 0.950 ± 0.022 | 2.50 |" in text


def test_page_follows_from_the_numbers():
    folder = ROOT / "results" / "interval-coverage"
    records = json.loads((folder / "runs.json").read_text())
    assert page(records) == (folder / "interval-coverage.md").read_text()
