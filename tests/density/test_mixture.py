import numpy as np
import pytest
import torch
from scipy import stats

from roundtrip.density.mixture import StudentMixture


@pytest.fixture
def mixture():
    """Two rows: different mixtures of two components in three dimensions."""
    rng = np.random.default_rng(0)
    factors = np.tril(rng.normal(size=(2, 2, 3, 3)))
    factors[..., range(3), range(3)] = 0.5 + rng.uniform(size=(2, 2, 3))
    return StudentMixture(
        torch.tensor([[0.3, 0.7], [0.8, 0.2]], dtype=torch.float64),
        torch.from_numpy(rng.normal(size=(2, 2, 3)) * 2),
        torch.from_numpy(factors),
        df=5.0,
    )


def test_density_is_that_of_scipy(mixture):
    z = torch.from_numpy(np.random.default_rng(1).normal(size=(2, 20, 3)))
    for row in range(2):
        expected = sum(
            float(mixture.weights[row, k])
            * stats.multivariate_t(
                mixture.means[row, k], mixture.factors[row, k] @ mixture.factors[row, k].T, df=5.0
            ).pdf(z[row])
            for k in range(2)
        )
        np.testing.assert_allclose(mixture.log_prob(z)[row].exp(), expected)


def test_draws_follow_the_density(mixture):
    """The mean of 1/q over draws inside a ball is the ball's volume."""
    draws = mixture.sample(200_000, [np.random.default_rng(seed) for seed in (0, 1)])
    inside = (draws - mixture.means[:, :1]).square().sum(-1) < 1.0
    inverse = torch.where(inside, torch.exp(-mixture.log_prob(draws)), 0.0)
    volume, error = inverse.mean(1), inverse.std(1) / 200_000**0.5
    assert ((volume - 4 / 3 * np.pi).abs() < 4 * error).all()
    assert (error < 0.1).all()


def test_components_are_drawn_in_proportion(mixture):
    far = StudentMixture(
        mixture.weights,
        torch.tensor([[[0.0] * 3, [1e6] * 3]] * 2, dtype=torch.float64),
        mixture.factors,
        mixture.df,
    )
    draws = far.sample(1000, [np.random.default_rng(seed) for seed in (0, 1)])
    share = (draws[..., 0] > 1e5).double().mean(1)
    torch.testing.assert_close(share, far.weights[:, 1], rtol=0, atol=0.0011)


def test_rows_have_streams_of_their_own(mixture):
    both = mixture.sample(10, [np.random.default_rng(seed) for seed in (0, 1)])
    second = mixture[torch.tensor([1])].sample(10, [np.random.default_rng(1)])
    torch.testing.assert_close(both[1:], second, rtol=1e-12, atol=0)


def test_refit_finds_the_target(mixture):
    """Fitted again and again to weighted draws, the mixture becomes the Gaussian target."""
    target = stats.multivariate_normal([1.0, -2.0, 0.5], np.diag([0.25, 1.0, 0.04]))
    generators = [np.random.default_rng(seed) for seed in (0, 1)]
    for _ in range(6):
        draws = mixture.sample(2000, generators)
        log_weights = torch.from_numpy(target.logpdf(draws)) - mixture.log_prob(draws)
        mixture = mixture.refit(draws, log_weights)
    draws = mixture.sample(2000, generators)
    weights = torch.softmax(torch.from_numpy(target.logpdf(draws)) - mixture.log_prob(draws), 1)
    assert (1 / weights.square().sum(1) / 2000 > 0.7).all()


def test_refit_does_not_collapse_on_one_heavy_draw(mixture):
    draws = mixture.sample(64, [np.random.default_rng(seed) for seed in (0, 1)])
    log_weights = torch.zeros(2, 64, dtype=torch.float64)
    log_weights[:, 0] = 500.0
    refitted = mixture.refit(draws, log_weights)
    before = mixture.factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    after = refitted.factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    assert (after - before > -1.0).all()
    assert torch.isfinite(refitted.log_prob(draws)).all()


def test_refit_survives_components_that_are_nearly_flat():
    """Rounding may lose the narrow direction of their matrices among the others."""
    rng = torch.Generator().manual_seed(0)
    for narrowest in 10.0 ** -np.arange(6, 16):
        turn = torch.linalg.qr(torch.randn(12, 12, generator=rng).double())[0]
        widths = torch.ones(12, dtype=torch.float64)
        widths[-3:] = narrowest
        factor = torch.linalg.qr((turn * widths).mT)[1].mT
        factor = factor * factor.diagonal().sign()
        mixture = StudentMixture(
            torch.ones(1, 1, dtype=torch.float64),
            torch.zeros(1, 1, 12, dtype=torch.float64),
            factor[None, None],
            df=17.0,
        )
        draws = mixture.sample(200, [np.random.default_rng(0)])
        refitted = mixture.refit(draws, torch.zeros(1, 200, dtype=torch.float64))
        assert torch.isfinite(refitted.log_prob(draws)).all()
