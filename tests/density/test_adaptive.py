import math
import warnings

import numpy as np
import pytest
import torch
from oracles import FoldedModel, LinearModel, with_wide_posterior

from roundtrip import DensityWarning, RoundtripModel
from roundtrip.density import estimate
from roundtrip.density.adaptive import _confirm
from roundtrip.density.jacobian import generator_jacobian
from roundtrip.density.sampling import _round_sizes

ORACLES = {
    **{
        f"linear {m} to {n}": LinearModel(m, n)
        for m in (1, 2, 5, 8, 20)
        for n in sorted({max(1, m // 2), m, m + 3})
    },
    "folded 1": FoldedModel(1),
    "folded 2": FoldedModel(2),
}


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES.keys())
def test_within_four_of_its_own_standard_errors(oracle):
    x = oracle.points(40)
    result = estimate(oracle.model, x, tol=0.02)
    assert result.converged.all()
    assert (result.std_error <= 0.02).all()
    z = (result.log_density - oracle.log_density(x)) / result.std_error
    assert np.abs(z).max() < 4


@pytest.mark.parametrize("latent_dim", [1, 2])
def test_laplace_is_wrong_where_the_posterior_is_bimodal(latent_dim):
    folded = FoldedModel(latent_dim)
    x = folded.points(40)
    laplace = estimate(folded.model, x, method="laplace").log_density
    assert np.abs(laplace - folded.log_density(x)).mean() > 0.3


CALIBRATION = {"linear": LinearModel(6, 9), "folded": FoldedModel(2)}


@pytest.mark.parametrize("oracle", CALIBRATION.values(), ids=CALIBRATION.keys())
def test_certificate_is_calibrated(oracle):
    x = oracle.points(300)
    result = estimate(oracle.model, x)
    z = (result.log_density - oracle.log_density(x)) / result.std_error
    z = z[result.converged]
    assert len(z) > 290
    assert 0.7 < z.std() < 1.5
    assert (np.abs(z) > 4).mean() <= 0.02
    assert abs(z.mean()) < 0.5


def test_when_to_stop_is_not_decided_by_the_draws_that_count():
    """If it is, means over rows are too high, the more so as a wide proposal bounds the weights.

    Errors are not divided by their own error bars: with weights that are bounded above, a high
    estimate has a small one, so that the mean of such ratios is positive for any number of draws.
    """
    oracle = LinearModel(2, 3)
    model = with_wide_posterior(oracle, width=1.4)
    x = oracle.points(4000)
    result = estimate(model, x, tol=0.05)
    error = result.log_density - oracle.log_density(x)
    error += result.std_error**2 / 2  # that is by how much the logarithm of a mean is too low
    assert result.converged.all()
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(len(x))


def test_tighter_tolerance_costs_more_and_gives_more():
    folded = FoldedModel(2)
    x = folded.points(20)
    loose, tight = (estimate(folded.model, x, tol=tol) for tol in (0.2, 0.02))
    assert tight.n_evaluations.mean() > 3 * loose.n_evaluations.mean()
    assert (tight.std_error <= 0.02).all()
    assert len(set(tight.n_evaluations)) > 1  # rows that are done stop costing


def test_budget_is_kept_and_failures_are_reported_once():
    folded = FoldedModel(2)
    x = folded.points(20)
    with pytest.warns(DensityWarning, match=r"20 of 20 rows did not converge") as caught:
        result = estimate(folded.model, x, tol=1e-5, max_evaluations=500)
    assert len(caught) == 1
    assert (result.n_evaluations <= 500).all()
    assert (result.n_evaluations > 350).all()  # what finding the modes leaves over is drawn
    assert not result.converged.any()
    assert "20 rows did not converge" in result.summary()
    with pytest.raises(ValueError, match="max_evaluations must be at least"):
        estimate(folded.model, x, max_evaluations=10)


def test_evaluations_are_counted_honestly(monkeypatch):
    """What is reported is what G was asked for, besides padding and the bank."""
    folded = FoldedModel(2)
    x = folded.points(1)
    monkeypatch.setattr("roundtrip.density.weights.EVALUATIONS_PER_CALL", 1)
    monkeypatch.setattr("roundtrip.density.starts.modes.EVALUATIONS_PER_CALL", 1)
    monkeypatch.setattr("roundtrip.density.starts.modes.MOST_ROWS_PER_CALL", 1)
    monkeypatch.setattr("roundtrip.density.starts.bank.BANK_SIZE", 1)
    calls, expansions = [], []
    folded.model.generator.register_forward_hook(lambda *args: calls.append(args))

    def counted_jacobian(*args):
        expansions.append(args)
        return generator_jacobian(*args)

    monkeypatch.setattr("roundtrip.density.starts.modes.generator_jacobian", counted_jacobian)
    result = estimate(folded.model, x, tol=0.1)
    # A Jacobian is one call of G and 1 + 2 evaluations; the bank and the check of shapes are
    # two more calls.
    assert len(calls) == result.n_evaluations[0] - 2 * len(expansions) + 2


def test_seed_matters_and_repeats():
    folded = FoldedModel(1)
    x = folded.points(5)
    first, again, other = (
        estimate(folded.model, x, random_state=seed).log_density for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_frame_and_summary():
    folded = FoldedModel(1)
    result = estimate(folded.model, folded.points(3))
    frame = result.to_frame()
    assert list(frame.columns) == [
        "log_density", "std_error", "ess", "n_evaluations", "pareto_k", "converged",
    ]  # fmt: skip
    assert len(frame) == 3
    assert "3 rows by adaptive" in result.summary()


def test_unbiased_on_average():
    """The mean of p-hat over many seeds is p, with no help from large samples."""
    linear = LinearModel(8, 8)
    x = linear.points(1)
    truth = linear.log_density(x)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        ratios = [
            np.exp(
                estimate(
                    linear.model, x, tol=1e-9, max_evaluations=500, random_state=seed
                ).log_density[0]
                - truth
            )
            for seed in range(150)
        ]
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios) / np.sqrt(len(ratios))


def test_is_the_default_method():
    linear = LinearModel(1, 1)
    assert estimate(linear.model, linear.points(2)).method == "adaptive"


def test_more_latent_dimensions_than_features_and_hardly_any_noise():
    """The precision of z then spans more digits than float64 has."""
    rng = torch.Generator().manual_seed(0)
    linear = torch.nn.Linear(6, 3).double()
    linear.weight.data = 3 * torch.randn(3, 6, generator=rng, dtype=torch.float64)
    model = RoundtripModel(linear, torch.nn.Linear(3, 6).double(), 6, 1e-5)
    x = torch.randn(5, 3, generator=rng, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        assert np.isfinite(estimate(model, x).log_density).all()


@pytest.mark.parametrize("budget", [96, 97, 200, 500, 5000, 20_000])
def test_no_round_is_a_small_remainder(budget):
    sizes = list(_round_sizes(budget))
    assert sum(sizes) == budget
    assert min(sizes) >= 96
    assert sizes[-1] >= sizes[0]


def test_a_second_estimate_must_agree():
    """Rows 0 to 2 are estimated again: the same, higher and lower; row 3 is not."""

    def columns(values):
        log_density = torch.tensor(values, dtype=torch.float64)
        return {
            "log_density": log_density,
            "std_error": torch.full_like(log_density, 0.05),
            "ess": torch.full_like(log_density, 80.0),
            "pareto_k": torch.full_like(log_density, 0.1),
            "converged": torch.ones_like(log_density, dtype=torch.bool),
            "n_evaluations": torch.full_like(log_density, 100, dtype=torch.int64),
        }

    first = columns([-1.0, -90.0, -2.0, -3.0])
    _confirm(first, torch.tensor([True, True, True, False]), columns([-1.1, -5.0, -70.0]))
    mean = math.log((math.exp(-1.0) + math.exp(-1.1)) / 2)
    assert first["log_density"].tolist() == pytest.approx([mean, -5.0, -2.0, -3.0])
    # That of a mean of two independent estimates.
    assert first["std_error"].tolist() == pytest.approx([0.05 / 2**0.5, 0.05, 0.05, 0.05], rel=0.01)
    assert first["ess"].tolist() == [160.0, 80.0, 80.0, 80.0]
    assert first["converged"].tolist() == [True, False, False, True]
    assert first["n_evaluations"].tolist() == [200, 200, 200, 100]
