import numpy as np
import pytest
import torch
from oracles import LinearModel
from torch import nn

from roundtrip import RoundtripModel
from roundtrip.density import estimate
from roundtrip.density.jacobian import generator_jacobian
from roundtrip.model.networks import mlp


@pytest.mark.parametrize("latent_dim", [1, 2, 5, 8, 20])
@pytest.mark.parametrize("difference", [-2, 0, 3])
@pytest.mark.parametrize("sigma", [0.01, 0.5])
def test_exact_for_linear_generator(latent_dim, difference, sigma):
    linear = LinearModel(latent_dim, max(1, latent_dim + difference), sigma=sigma)
    x = linear.points(20)
    result = estimate(linear.model, x, method="laplace")
    np.testing.assert_allclose(result.log_density, linear.log_density(x), rtol=1e-6)
    assert np.isnan(result.std_error).all()
    assert np.isnan(result.ess).all()
    assert (result.n_evaluations == 1 + latent_dim).all()


@pytest.mark.parametrize("latent_dim", [4, 20])
def test_stays_exact_as_sigma_vanishes_with_more_latent_dimensions_than_features(latent_dim):
    linear = LinearModel(latent_dim, 3, sigma=1e-6)
    x = linear.points(20)
    result = estimate(linear.model, x, method="laplace")
    np.testing.assert_allclose(result.log_density, linear.log_density(x), rtol=1e-6)


class Warp(nn.Module):
    """An invertible nonlinear map of the plane with a Jacobian that is not constant."""

    def forward(self, z):
        first = torch.sinh(z[:, 0])
        return torch.stack([first, z[:, 1] * torch.exp(0.3 * first) + first.square()], dim=1)

    @staticmethod
    def log_det(z):
        return torch.log(torch.cosh(z[:, 0])) + 0.3 * torch.sinh(z[:, 0])


class Unwarp(nn.Module):
    def forward(self, x):
        second = (x[:, 1] - x[:, 0].square()) * torch.exp(-0.3 * x[:, 0])
        return torch.stack([torch.asinh(x[:, 0]), second], dim=1)


def test_change_of_variables_is_the_limit_of_small_sigma():
    """Appendix B: m = n, H = G⁻¹, sigma → 0 gives p(z) |det J|⁻¹."""
    z = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = Warp()(z)
    expected = -0.5 * z.square().sum(1) - np.log(2 * np.pi) - Warp.log_det(z)
    gaps = []
    for sigma in (1e-4, 1e-5, 1e-6):
        model = RoundtripModel(Warp(), Unwarp(), 2, sigma)
        result = estimate(_double(model), x, method="laplace")
        gaps.append(np.abs(result.log_density - expected.numpy()).max())
    assert gaps[-1] < 1e-6
    np.testing.assert_allclose(np.divide(gaps[:-1], gaps[1:]), 100, rtol=0.05)  # O(sigma²)


def _double(model):
    """Modules without weights are called in the default precision: give them one in float64."""
    for network in (model.generator, model.encoder):
        network.register_parameter("_", nn.Parameter(torch.zeros((), dtype=torch.float64)))
    return model


def test_jacobian_agrees_with_reverse_mode():
    G = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.BatchNorm1d(16), nn.Linear(16, 5)).double()
    model = RoundtripModel(G, nn.Identity(), 3, 0.1).eval()
    z = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    generated, jacobian = generator_jacobian(model, z)
    torch.testing.assert_close(generated, G(z))
    full = torch.autograd.functional.jacobian(G, z)
    torch.testing.assert_close(jacobian, torch.stack([full[i, :, i] for i in range(4)]))


def test_jacobian_by_hand_agrees_with_forward_mode():
    rng = torch.Generator().manual_seed(0)
    G = mlp(3, 5, (16, 16, 16), rng=rng).double()
    z = torch.randn(7, 3, dtype=torch.float64, generator=rng)
    by_hand = generator_jacobian(RoundtripModel(G, nn.Identity(), 3, 0.1), z)
    hidden_in_a_wrapper = nn.Sequential(G)
    by_torch = generator_jacobian(RoundtripModel(hidden_in_a_wrapper, nn.Identity(), 3, 0.1), z)
    torch.testing.assert_close(by_hand, by_torch, rtol=1e-13, atol=1e-13)


def test_approximates_importance_sampling_where_the_generator_is_nearly_linear():
    linear = LinearModel(2, 3)
    with torch.no_grad():
        linear.model.generator.weight.mul_(0.2)
        linear.model.generator.bias.mul_(0.2)
    G = nn.Sequential(linear.model.generator, nn.Tanh())
    model = RoundtripModel(G, linear.model.encoder, 2, 0.5)
    x = 0.1 * np.random.default_rng(0).normal(size=(5, 3))
    laplace = estimate(model, x, method="laplace")
    exact = estimate(model, x, method="importance", n_samples=400_000)
    np.testing.assert_allclose(laplace.log_density, exact.log_density, atol=0.03)
