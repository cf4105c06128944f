import numpy as np
import pytest
import torch
from oracles import LinearModel
from scipy import stats

from roundtrip.data import Rows
from roundtrip.density import estimate
from roundtrip.density.importance import importance_over_sigmas
from roundtrip.density.proposals import student_t_draws, student_t_log_prob
from roundtrip.density.randomness import row_generators

SHAPES = [
    (latent, features)
    for latent in (1, 2, 5, 8, 20)
    for features in sorted({max(1, latent // 2), latent, latent + 3})
]


def within(result, truth, errors=4.0):
    return np.abs(result.log_density - truth) <= errors * result.std_error


@pytest.mark.parametrize(("latent_dim", "features"), SHAPES)
def test_linear_generator_exact_within_four_standard_errors(latent_dim, features):
    linear = LinearModel(latent_dim, features)
    n_samples, rows = (400_000, 5) if latent_dim == 20 else (40_000, 10)
    x = linear.points(rows)
    result = estimate(linear.model, x, method="importance", n_samples=n_samples, scale=0.5, df=1.0)
    assert within(result, linear.log_density(x)).all()
    assert (result.std_error < 0.2).mean() >= 0.9  # the bar above means something
    assert (result.n_evaluations == n_samples).all()


@pytest.mark.parametrize("scale", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("df", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("n_samples", [2_000, 20_000])
def test_result_does_not_depend_on_proposal(scale, df, n_samples):
    linear = LinearModel(5, 7)
    x = linear.points(20)
    result = estimate(
        linear.model,
        x,
        method="importance",
        n_samples=n_samples,
        scale=scale,
        df=df,
        random_state=3,
    )
    assert within(result, linear.log_density(x)).all()


def test_standard_errors_are_calibrated():
    """Over many seeds, (estimate - truth) / std_error has spread 1 and the weights mean 1."""
    linear = LinearModel(3, 4)
    x = linear.points(1)
    truth = linear.log_density(x)
    z, ratio = [], []
    for seed in range(300):
        result = estimate(linear.model, x, method="importance", n_samples=2000, random_state=seed)
        z.append((result.log_density - truth)[0] / result.std_error[0])
        ratio.append(np.exp(result.log_density - truth)[0])
    assert 0.85 < np.std(z) < 1.15
    assert abs(np.mean(ratio) - 1) < 4 * np.std(ratio) / np.sqrt(len(ratio))  # unbiased


def test_effective_sample_size_and_error_agree_with_their_definitions():
    linear = LinearModel(2, 2)
    x = linear.points(1)
    result = estimate(linear.model, x, method="importance", n_samples=1000, random_state=5)
    draws, log_q = student_t_draws(1000, 2, 1.0, row_generators(x, seed=5)[0])
    z = linear.model.encode(torch.from_numpy(x)) + 0.5 * draws
    log_w = linear.model.log_joint(torch.from_numpy(x), z) - (log_q - 2 * np.log(0.5))
    w = log_w.exp().detach().numpy()
    assert result.log_density[0] == pytest.approx(np.log(w.mean()))
    assert result.ess[0] == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert result.std_error[0] == pytest.approx(w.std(ddof=1) / np.sqrt(1000) / w.mean())


def test_all_sigmas_come_from_one_set_of_evaluations():
    linear = LinearModel(2, 3)
    x = linear.points(7)
    sigmas = [0.1, 0.5, 2.0]
    calls = []
    linear.model.generator.register_forward_hook(lambda *args: calls.append(args))
    grid = importance_over_sigmas(
        linear.model,
        Rows.without_context(torch.from_numpy(x)),
        n_samples=500,
        scale=0.5,
        df=1.0,
        sigmas=torch.tensor(sigmas, dtype=torch.float64),
        seed=0,
    )
    on_the_grid = len(calls)
    for column, sigma in enumerate(sigmas):
        single = estimate(
            linear.model, x, method="importance", n_samples=500, sigma=sigma, random_state=0
        )
        np.testing.assert_allclose(grid[:, column], single.log_density, rtol=1e-12)
    assert len(calls) == 4 * on_the_grid + 3  # each estimate also checks the networks' shapes


@pytest.mark.parametrize("df", [1.0, 4.0])
def test_student_t_density_is_that_of_the_draws(df):
    draws, log_prob = student_t_draws(50, 3, df, np.random.default_rng(0))
    np.testing.assert_allclose(
        log_prob, stats.multivariate_t(np.zeros(3), np.eye(3), df=df).logpdf(draws)
    )
    np.testing.assert_allclose(log_prob, student_t_log_prob(draws, df))
    many, _ = student_t_draws(20_000, 3, df, np.random.default_rng(1))
    radius = many.square().sum(-1).numpy() / 3  # F-distributed for a multivariate t, and only then
    assert stats.kstest(radius, stats.f(3, df).cdf).pvalue > 0.01


def test_errors_of_different_rows_are_independent():
    """The mean over a table must have a smaller error than a row: rows share no draws."""
    linear = LinearModel(2, 2)
    x = linear.points(400)
    truth = linear.log_density(x)
    result = estimate(linear.model, x, method="importance", n_samples=200)
    z = (result.log_density - truth) / result.std_error
    assert abs(z.mean()) < 4 / np.sqrt(len(z)) + 0.5 * result.std_error.mean()  # bias of the log
    twice = estimate(
        linear.model, np.repeat(x[:1], 2, axis=0), method="importance", n_samples=200
    ).log_density
    assert twice[0] == twice[1]
