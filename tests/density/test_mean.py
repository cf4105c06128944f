"""The mean log density of many rows."""

import numpy as np
import pytest
import torch
from oracles import LinearModel, with_wide_posterior

from roundtrip.density.mean import mean_log_density
from roundtrip.density.prepared import PreparedModel


def prepared_of(oracle, width):
    return PreparedModel(with_wide_posterior(oracle, width), nets=True)


@pytest.mark.parametrize(("dim", "width"), [(2, 0.8), (6, 1.0), (6, 1.4)])
def test_means_are_unbiased_and_their_standard_errors_calibrated(dim, width):
    oracle = LinearModel(dim, dim + 3)
    prepared = prepared_of(oracle, width)
    points = oracle.points(3000)
    x, truth = torch.from_numpy(points), oracle.log_density(points).mean()
    means = [mean_log_density(prepared, x, tol=0.02, seed=seed) for seed in range(20)]
    errors = np.array([each.mean - truth for each in means])
    std_errors = np.array([each.std_error for each in means])
    assert all(each.converged for each in means)
    assert (std_errors <= 0.02).all()
    assert 0.6 < (errors / std_errors).std() < 1.5
    assert abs(errors.mean()) < 4 * std_errors.mean() / np.sqrt(20)
    assert means[0].n_evaluations < 60 * len(x)


def test_a_smaller_tolerance_takes_more_evaluations():
    oracle = LinearModel(3, 5)
    prepared, x = prepared_of(oracle, 1.2), torch.from_numpy(oracle.points(2000))
    rough, fine = (mean_log_density(prepared, x, tol=tol, seed=0) for tol in (0.02, 0.001))
    assert fine.std_error <= 0.001 < rough.std_error
    assert fine.n_evaluations > 1.5 * rough.n_evaluations


def test_few_rows_are_estimated_one_by_one():
    oracle = LinearModel(2, 3)
    points = oracle.points(5)
    result = mean_log_density(prepared_of(oracle, 1.0), torch.from_numpy(points), tol=0.02, seed=0)
    assert result.converged
    assert abs(result.mean - oracle.log_density(points).mean()) < 4 * result.std_error


def test_far_rows_among_many_count():
    oracle = LinearModel(2, 3)
    points = np.concatenate([oracle.points(1000), 12 * oracle.points(10)])
    result = mean_log_density(prepared_of(oracle, 1.0), torch.from_numpy(points), tol=0.02, seed=0)
    assert abs(result.mean - oracle.log_density(points).mean()) < 4 * result.std_error


def test_the_mean_does_not_depend_on_the_order_of_rows():
    oracle = LinearModel(2, 3)
    prepared, x = prepared_of(oracle, 1.0), torch.from_numpy(oracle.points(1200))
    first, second = (mean_log_density(prepared, rows, tol=0.02, seed=0) for rows in (x, x.flip(0)))
    assert first.mean == pytest.approx(second.mean, abs=1e-12)
