"""The mean log density of many rows."""

import warnings

import numpy as np
import pytest
import torch
from oracles import LinearModel, with_wide_posterior

from roundtrip import DensityWarning
from roundtrip.data import Rows
from roundtrip.density.estimate import evaluate_mean
from roundtrip.density.mean import FIRST_POINTS, MOST_DOUBLINGS
from roundtrip.density.nets import shifted_nets, uniform_of_keys
from roundtrip.density.prepared import PreparedModel


def prepared_of(oracle, width):
    return PreparedModel(with_wide_posterior(oracle, width), nets=True)


def mean_log_density(prepared, x, *, tol, seed):
    return evaluate_mean(prepared, Rows.without_context(x), tol=tol, seed=seed)


@pytest.mark.parametrize(("dim", "width"), [(2, 0.8), (6, 1.0), (6, 1.4)])
def test_means_are_unbiased_and_their_standard_errors_calibrated(dim, width):
    oracle = LinearModel(dim, dim + 3)
    prepared = prepared_of(oracle, width)
    points = oracle.points(1000)
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


def test_copies_of_rows_have_one_error():
    """Equal rows have equal draws: their errors do not cancel out."""
    oracle = LinearModel(3, 5)
    prepared, points = prepared_of(oracle, 1.3), oracle.points(120)
    x, truth = torch.from_numpy(np.repeat(points, 20, axis=0)), oracle.log_density(points).mean()
    means = [mean_log_density(prepared, x, tol=0.05, seed=seed) for seed in range(20)]
    z = [(each.mean - truth) / each.std_error for each in means]
    assert 0.6 < np.std(z) < 1.5
    assert means[0].rows == 2400


def test_a_row_without_a_density_does_not_end_the_estimate():
    oracle = LinearModel(2, 3)
    points = np.concatenate([oracle.points(2000), np.full((1, 3), 1e200)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        result = mean_log_density(
            prepared_of(oracle, 1.0), torch.from_numpy(points), tol=0.02, seed=0
        )
    assert not result.converged
    assert result.failed_rows == 1


def test_both_halves_of_a_net_have_the_same_distribution():
    """The second half is the first one with some digits flipped, which the random shift hides."""
    integers = (shifted_nets(np.zeros(1, np.uint64), 0, 512, 5, torch.device("cpu")) * 2**30).long()
    for doubling in range(MOST_DOUBLINGS):
        half = FIRST_POINTS * 2**doubling
        first, second = integers[0, :half], integers[0, half : 2 * half]
        points = {tuple(point) for point in second.tolist()}
        flips = (first[0] ^ second).unique(dim=0)  # one of them leads from each point to its image
        assert any({tuple(point) for point in (first ^ flip).tolist()} == points for flip in flips)


def test_the_number_of_points_is_independent_of_the_net():
    keys = np.arange(200_000, dtype=np.uint64)
    uniform = uniform_of_keys(keys)
    shift = shifted_nets(keys[:50_000], 0, 1, 4, torch.device("cpu"))[:, 0].numpy()
    assert abs(uniform.mean() - 0.5) < 4 / np.sqrt(12 * len(keys))
    assert np.abs(np.corrcoef(uniform[:50_000], shift, rowvar=False)[0, 1:]).max() < 0.02
    rare = uniform[:50_000] < 2**-3
    assert np.abs(shift[rare].mean(axis=0) - 0.5).max() < 4 / np.sqrt(12 * rare.sum())
