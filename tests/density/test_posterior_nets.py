"""Densities by nets from the encoder's posterior."""

import math

import numpy as np
import pytest
import torch
from oracles import FoldedModel, LinearModel, OneSide, with_wide_posterior

from roundtrip.density.adaptive import adaptive
from roundtrip.density.encoder_proposal import EncoderProposal
from roundtrip.density.net_variance import net_variance
from roundtrip.density.nets import shifted_nets
from roundtrip.density.posterior_nets import by_nets
from roundtrip.density.prepared import PreparedModel
from roundtrip.model.core import RoundtripModel

CPU = torch.device("cpu")


def test_density_of_the_draws_is_the_one_they_are_weighted_by():
    """The mean of f / q over draws from q is the integral of f, here of a normal density."""
    oracle = LinearModel(3, 4)
    model = with_wide_posterior(oracle, width=1.0)
    x = torch.from_numpy(oracle.points(200))
    proposal = EncoderProposal.of(model, x)
    keys = np.arange(200, dtype=np.uint64)
    z, log_prob = proposal.draws(shifted_nets(keys, 0, 64, 4, CPU))
    target = torch.distributions.MultivariateNormal(
        proposal.mean + 0.3 * proposal.factor.sum(-1), scale_tril=proposal.factor
    )
    ratio = torch.exp(target.log_prob(z.movedim(1, 0)).movedim(0, 1) - log_prob).mean(dim=1)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / math.sqrt(200)


@pytest.mark.parametrize("tol", [0.05, 0.02])
@pytest.mark.parametrize("width", [0.8, 1.0, 1.3])
@pytest.mark.parametrize("dim", [2, 6])
def test_standard_errors_are_calibrated_and_means_unbiased(dim, width, tol):
    oracle = LinearModel(dim, dim + 3)
    model = with_wide_posterior(oracle, width)
    points = oracle.points(2000)
    x = torch.from_numpy(points)
    variance = net_variance(model)
    result = by_nets(model, x, variance=variance, tol=tol, seed=0)
    converged = result["converged"].numpy()
    error = (result["log_density"].numpy() - oracle.log_density(points))[converged]
    std_error = result["std_error"].numpy()[converged]
    assert all(0.01 < ratio < 0.6 for ratio in variance.ratios)
    assert converged.mean() > 0.95
    assert (std_error <= tol).all()
    assert (np.abs(error / std_error) > 4).mean() <= 0.01
    assert abs(error.mean()) < 0.003
    if tol == 0.05:
        assert 0.75 < (error / std_error).std() < 1.25
    # Nets of every size: some fill the cube less evenly than others. Large ones are more precise
    # than the measurement on small ones says.
    evaluations = result["n_evaluations"].numpy()[converged]
    for size in np.unique(evaluations):
        among = evaluations == size
        if among.sum() > 100:
            assert (error / std_error)[among].std() < 1.25, size


def test_most_rows_need_few_points_and_the_others_another_method():
    oracle = LinearModel(6, 9)
    good, poor = (with_wide_posterior(oracle, width) for width in (1.1, 0.4))
    points = oracle.points(300)
    x = torch.from_numpy(points)
    exact = oracle.log_density(points)
    for model, fewest, most in ((good, 65, 97), (poor, 98, math.inf)):
        result = adaptive(
            PreparedModel(model, nets=True), x, tol=0.05, max_evaluations=20_000, seed=0
        )
        assert fewest <= np.median(result.n_evaluations) <= most
        assert result.converged.mean() > 0.99
        assert (np.abs((result.log_density - exact) / result.std_error) > 4).mean() <= 0.01


def test_evaluations_of_both_methods_are_added_and_kept_within_the_budget():
    oracle = LinearModel(6, 9)
    model = with_wide_posterior(oracle, 0.4)
    x = torch.from_numpy(oracle.points(50))
    prepared = PreparedModel(model, nets=True)
    result = adaptive(prepared, x, tol=1e-4, max_evaluations=2000, seed=0)
    assert (result.n_evaluations <= 2000).all()
    assert (result.n_evaluations > 1000).all()
    assert not result.converged.any()


def test_no_nets_if_the_encoder_misses_a_mode():
    oracle = FoldedModel(1)
    model = RoundtripModel(
        oracle.model.generator, OneSide(0.15), 1, oracle.sigma, has_posterior=True
    )
    assert not net_variance(model).is_finite
    points = oracle.points(100)
    x = torch.from_numpy(points)
    result = adaptive(PreparedModel(model, nets=True), x, tol=0.05, max_evaluations=20_000, seed=0)
    error = (result.log_density - oracle.log_density(points)) / result.std_error
    assert (np.abs(error[result.converged]) > 4).sum() <= 1
