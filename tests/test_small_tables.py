"""The benchmark of small tables: known truths, splits and a page of unfinished results."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from small_tables_data import FACTOR_COLUMNS, TABLES, MissingTableError, make_factor_model, split_of
from small_tables_methods import METHODS, ROUNDTRIP, CrossValidatedKDE, MixtureByBIC
from small_tables_page import page

from roundtrip.baselines.kde import log_kernel_density


def test_density_of_the_factor_model_has_the_entropy_of_its_gaussian():
    """E log p(x) = E log N(y) - E log |dx / dy|, which is a one-dimensional integral."""
    data = make_factor_model(20_000, random_state=0)
    y = data.X.copy()
    y[:, 1::3], y[:, 2::3] = 2 * np.log(y[:, 1::3]), np.arcsinh(y[:, 2::3])
    log_det = np.linalg.slogdet(np.corrcoef(y.T))[1]  # of unit variances
    log_cosh = quad(lambda t: norm.pdf(t) * np.log(np.cosh(t)), -10, 10)[0]
    expected = -0.5 * (FACTOR_COLUMNS * np.log(2 * np.pi * np.e) + log_det)
    expected -= FACTOR_COLUMNS / 3 * (log_cosh - np.log(2))
    log_density = data.log_density(data.X)
    # The determinant of an estimated covariance is too low by about features² / (2 rows).
    bias = FACTOR_COLUMNS**2 / (4 * len(y))
    assert log_density.mean() == pytest.approx(expected - bias, abs=0.3)


def test_subsets_share_test_rows_and_truth_is_in_standardised_units():
    small, large = (split_of(f"involute, {rows} rows", 1, None) for rows in (100, 1000))
    assert (len(small.train), len(large.train), len(small.test)) == (100, 1000, 2000)
    assert small.train.mean(axis=0) == pytest.approx(np.zeros(2), abs=1e-9)
    assert small.train.std(axis=0) == pytest.approx(np.ones(2))
    # One affine map leads from one split's units to the other's.
    a, b = small.test, large.test
    slope = b.std(axis=0) / a.std(axis=0)
    assert b == pytest.approx((a - a.mean(axis=0)) * slope + b.mean(axis=0))
    assert large.truth + np.log(slope).sum() == pytest.approx(small.truth)


def test_missing_folder_is_told(monkeypatch):
    monkeypatch.delenv("ROUNDTRIP_DATA", raising=False)
    with pytest.raises(MissingTableError, match="--data"):
        split_of("concrete", 0, None)


def test_kde_uses_all_rows_and_mixture_finds_clusters():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3, 0.5, (100, 2)), rng.normal(3, 0.5, (100, 2))])
    kde = CrossValidatedKDE(random_state=0).fit(X)
    assert len(kde.centres_) == 200
    assert 0.1 < kde.factor_ < 1
    import torch

    width = kde.factor_ * 200 ** (-1 / 6)
    rows = torch.from_numpy(X[:3])
    expected = log_kernel_density(rows, torch.from_numpy(X), [width])[:, 0].numpy()
    assert kde.score_samples(X[:3]) == pytest.approx(expected)
    assert MixtureByBIC(random_state=0).fit(X).mixture_.n_components == 2


def record(table, method, split, value, **others):
    return {
        "table": table,
        "method": method,
        "split": split,
        "log_density": value,
        "rows": "a",
        "features": 2,
        "spread_columns": 0,
        "train_rows": 100,
        "test_rows": 10,
        "fit_seconds": 1.0,
        "cpu_seconds": 1.0,
        "score_seconds": 0.1,
        "max_time": None,
        "stopped_by": "patience",
        "converged": 1.0,
        "median_evaluations": 100.0,
        "threads": 1,
        "cores": 2,
        "torch": "2",
        **others,
    }


def test_page_copes_with_missing_methods_splits_and_other_rows():
    first, second = list(TABLES)[:2]
    records = [record(first, method, 0, -3.0) for method in METHODS if method != ROUNDTRIP]
    records += [record(first, ROUNDTRIP, split, -4.0) for split in (0, 1)]
    records.append(record(second, "KDE", 0, -1.0, rows="old"))
    records += [record(second, ROUNDTRIP, split, -2.0 + split) for split in (0, 1)]
    text = page(records)
    rows = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    assert rows[0].endswith("| -4.00 | 6 of 6 | -0.500 |")
    rows = [line for line in text.splitlines() if line.startswith(f"| {second} |")]
    assert rows[0] == f"| {second} | 100 | 2 | 0 | 2 |  |  |  |  |  | -1.50 ± 0.50 | 1 of 1 |  |"
    assert f"behind the single Gaussian on 1 of 1 ({first})" in text
    assert "by 0.500 nats per feature" in text


def test_page_shows_the_distance_from_a_known_truth():
    name = "involute, 50 rows"
    truth = {"truth": -2.0, "truth_std_error": 0.1}
    text = page([record(name, "KDE", split, -2.5, **truth) for split in range(4)])
    assert f"| {name} | -0.500 (-10.0) |" in text  # standard error 0.1 / sqrt(4)


def test_page_tells_fits_that_had_no_time():
    starved = {"stopped_by": "max_time", "max_time": 1.0, "cpu_seconds": 0.5}
    text = page([record("iris", "MAF", 0, -3.0, **starved), record("iris", "NSF", 0, -3.0)])
    assert "less than 80% of a core: MAF on iris, split 0." in text
    assert "less than 80%" not in page([record("iris", "NSF", 0, -3.0)])
