"""Gaussian proposals refined by gradients."""

import numpy as np
import torch
from oracles import FoldedModel, LinearModel, OneSide, with_wide_posterior

from roundtrip.density.adaptive import adaptive
from roundtrip.density.net_variance import refinement_covers
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.starts.refinement import (
    most_refinement_evaluations,
    refined,
    refined_by_values,
)
from roundtrip.density.weights import encoded_posterior, weighted_estimate
from roundtrip.model.core import RoundtripModel


def wrong_encoder(oracle, width, shift):
    """The model with an encoder whose posteriors are too wide or narrow, and beside the true ones.

    Returns
    -------
    RoundtripModel
        The model; the encoder's means are `shift` prior standard deviations off.
    """
    model = with_wide_posterior(oracle, width)
    with torch.no_grad():
        model.encoder.bias[: model.latent_dim] += shift
    return model


def test_finds_the_posterior_of_a_linear_model():
    oracle = LinearModel(12, 20)
    x = torch.from_numpy(oracle.points(30))
    exact_mean, exact_factor = encoded_posterior(with_wide_posterior(oracle, 1.0), x)
    model = wrong_encoder(oracle, 0.5, 0.3)
    mean, factor, evaluations = refined(model, x, *encoded_posterior(model, x))
    widths = exact_factor.square().sum(-1).sqrt()
    assert ((mean - exact_mean).abs() / widths).max() < 0.2
    ratio = (factor @ factor.mT).diagonal(dim1=1, dim2=2).sqrt() / widths
    assert 0.85 < ratio.min() < ratio.max() < 1.15
    assert (evaluations > 0).all()
    assert (evaluations <= most_refinement_evaluations(12)).all()


def test_rows_are_refined_each_by_itself():
    oracle = LinearModel(20, 30)
    x = torch.from_numpy(oracle.points(40))
    model = wrong_encoder(oracle, 0.6, 0.1)
    first = encoded_posterior(model, x)
    all_rows = refined(model, x, *first)
    some_rows = refined(model, x[7:9], *(part[7:9] for part in first))
    for whole, part in zip(all_rows, some_rows, strict=True):
        torch.testing.assert_close(whole[7:9], part, rtol=1e-12, atol=1e-13)


def test_good_posteriors_stay_and_cost_one_iteration():
    oracle = LinearModel(4, 6)
    x = torch.from_numpy(oracle.points(20))
    model = with_wide_posterior(oracle, 1.0)
    mean, factor = encoded_posterior(model, x)
    better, width, evaluations = refined(model, x, mean, factor)
    torch.testing.assert_close(better, mean)
    torch.testing.assert_close(width, factor)
    assert len(evaluations.unique()) == 1


def test_many_latent_dimensions_converge_despite_a_poor_encoder():
    oracle = LinearModel(30, 60)
    points = oracle.points(40)
    model = wrong_encoder(oracle, 0.7, 0.1)
    x = torch.from_numpy(points)
    result = adaptive(PreparedModel(model, nets=True), x, tol=0.1, max_evaluations=10_000, seed=0)
    assert result.converged.mean() >= 0.95
    z = (result.log_density - oracle.log_density(points)) / result.std_error
    assert (np.abs(z[result.converged]) < 4).all()
    assert (result.n_evaluations <= 10_000).all()


def test_weights_become_even():
    oracle = LinearModel(20, 30)
    x = torch.from_numpy(oracle.points(10))
    model = wrong_encoder(oracle, 0.6, 0.1)
    first = encoded_posterior(model, x)
    after = refined(model, x, *first)[:2]
    shares = []
    for mean, factor in (first, after):
        noise = torch.randn(10, 400, 20, generator=torch.Generator().manual_seed(0)).double()
        z = mean[:, None] + noise @ factor.mT
        log_joint = model.log_joint(x.repeat_interleave(400, 0), z.flatten(0, 1)).view(10, 400)
        log_weights = log_joint + 0.5 * noise.square().sum(-1)
        shares.append(weighted_estimate(log_weights)[2].mean() / 400)
    assert shares[0] < 0.1 < 0.5 < shares[1]


def test_values_of_a_few_draws_find_the_posterior_of_a_linear_model():
    oracle = LinearModel(5, 8)
    x = torch.from_numpy(oracle.points(30))
    exact_mean, exact_factor = encoded_posterior(with_wide_posterior(oracle, 1.0), x)
    model = wrong_encoder(oracle, 1.2, 0.05)
    mean, factor = encoded_posterior(model, x)
    noise = torch.randn(30, 64, 5, generator=torch.Generator().manual_seed(0)).double()
    noise[:, :2] *= 40  # far draws, as proposals have some
    z = mean[:, None] + noise @ factor.mT
    log_joint = model.log_joint(x.repeat_interleave(64, 0), z.flatten(0, 1)).view(30, 64)
    log_weights = log_joint + 0.5 * noise.square().sum(-1)
    log_weights[:, :2] = -50
    better, width = refined_by_values(mean, factor, z, log_joint, log_weights)
    widths = exact_factor.square().sum(-1).sqrt()
    before, after = (((m - exact_mean) / widths).norm(dim=1).mean() for m in (mean, better))
    assert after < 0.3 * before
    deviation = [
        ((f @ f.mT).diagonal(dim1=1, dim2=2).sqrt() / widths).log().abs().mean()
        for f in (factor, width)
    ]
    assert deviation[1] < 0.5 * deviation[0]


def test_values_that_are_not_finite_do_no_harm():
    oracle = LinearModel(3, 4)
    x = torch.from_numpy(oracle.points(2))
    model = wrong_encoder(oracle, 1.2, 0.05)
    mean, factor = encoded_posterior(model, x)
    noise = torch.randn(2, 64, 3, generator=torch.Generator().manual_seed(0)).double()
    z = mean[:, None] + noise @ factor.mT
    log_joint = torch.full((2, 64), -torch.inf).double()
    log_joint[1, 1:] = 0.0
    log_joint[1, 0] = torch.nan
    for part in refined_by_values(mean, factor, z, log_joint, log_joint):
        assert part.isfinite().all()


def test_refinement_is_not_used_for_models_whose_posteriors_have_several_modes():
    oracle = FoldedModel(1)
    one_sided = RoundtripModel(
        oracle.model.generator, OneSide(0.15), 1, oracle.sigma, has_posterior=True
    )
    assert not refinement_covers(one_sided)
    assert refinement_covers(wrong_encoder(LinearModel(20, 30), 0.6, 0.1))
