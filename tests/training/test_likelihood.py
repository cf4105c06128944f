import copy
import math
import warnings

import numpy as np
import pytest
import torch
from oracles import LinearModel

from roundtrip import DensityWarning, Likelihood, Residual, Roundtrip, RoundtripModel
from roundtrip.data import Rows
from roundtrip.density import estimate
from roundtrip.model.core import posterior_outputs
from roundtrip.model.networks import ResidualMLP, mlp
from roundtrip.model.noise import ConstantGaussian
from roundtrip.training.batches import Batches
from roundtrip.training.bound import importance_weighted_bound
from roundtrip.training.flat import flattened
from roundtrip.training.likelihood_trainer import LikelihoodTrainer
from roundtrip.training.loop import train
from roundtrip.training.principal import start_at_principal_components
from roundtrip.training.validation import BoundValidation


def residual_model(latent_dim, features, *, sigma=0.5):
    rng = torch.Generator().manual_seed(0)
    sizes = {"width": 16, "blocks": 1, "rng": rng}
    code = posterior_outputs(latent_dim)
    return RoundtripModel(
        ResidualMLP(latent_dim, features, linear_outputs=features, **sizes),
        ResidualMLP(features, code, linear_outputs=code, **sizes),
        latent_dim,
        noise=ConstantGaussian(features, sigma=sigma),
        has_posterior=True,
    )


def correlated(rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    mixing = np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [0.2, -0.5, 0.1]])
    return Rows.without_context(torch.from_numpy(rng.normal(size=(rows, 3)) @ mixing.T + 0.3))


def gaussian_log_likelihood(x):
    covariance = torch.cov(x.mT, correction=0)
    return float(-0.5 * (torch.logdet(2 * math.pi * covariance) + x.shape[1]))


def test_principal_components_start_at_the_best_linear_model():
    """With as many latent dimensions as needed, PPCA is as likely as the Gaussian of the data."""
    data = correlated()
    model = residual_model(2, 3)
    start_at_principal_components(model, data)
    bound = importance_weighted_bound(
        model, data.to(torch.float32), n_draws=1, rng=torch.Generator().manual_seed(1)
    )
    # q is the exact posterior: the bound is log p(x) whatever the draw.
    again = importance_weighted_bound(
        model, data.to(torch.float32), n_draws=1, rng=torch.Generator().manual_seed(2)
    )
    assert (bound - again).abs().max() < 0.1  # float32, and a smallest width of the posterior
    assert abs((bound - again).mean()) < 1e-3
    mean = bound.mean().item()
    assert mean == pytest.approx(gaussian_log_likelihood(data.x), abs=0.02)


@pytest.mark.parametrize("n_draws", [1, 8])
def test_the_bound_is_below_the_log_density_and_rises_with_draws(n_draws):
    linear = LinearModel(2, 3, sigma=0.5)
    x = linear.points(400)
    rows = Rows.without_context(torch.from_numpy(x).float())
    model = residual_model(2, 3)
    start_at_principal_components(model, correlated())  # a posterior of another model
    model.generator = linear.model.generator
    exact = linear.log_density(x)
    rng = torch.Generator().manual_seed(0)
    few, many = (
        importance_weighted_bound(model, rows, n_draws=k, rng=rng).double()
        for k in (n_draws, 50 * n_draws)
    )
    assert few.mean() < many.mean() < exact.mean() + 0.05


def test_gradient_of_the_bound_vanishes_at_the_exact_posterior():
    """Sticking the landing: when q is exact, every single draw gives H no gradient."""
    data = correlated(64)
    model = residual_model(2, 3)
    start_at_principal_components(model, correlated())
    bound = importance_weighted_bound(
        model, data.to(torch.float32), n_draws=1, rng=torch.Generator().manual_seed(3)
    ).mean()
    (gradient,) = torch.autograd.grad(bound, model.encoder.last.bias)
    assert gradient[:2].abs().max() < 0.05
    assert gradient.abs().mean() < 0.02


def test_training_reaches_what_a_line_cannot():
    rng = np.random.default_rng(0)
    z = rng.normal(size=4000)
    x = torch.from_numpy(np.c_[z, z**2] + 0.1 * rng.normal(size=(4000, 2)))
    data = Rows.without_context((x - x.mean(0)) / x.std(0))
    model = residual_model(1, 2)
    start_at_principal_components(model, data)
    rng = torch.Generator().manual_seed(0)
    trainer = LikelihoodTrainer(model, draws=1, learning_rate=5e-3, averaging=0.9, rng=rng)
    data = data.to(torch.float32)
    validation = BoundValidation(trainer.kept, data[:500], draws=20, seed=0)
    before = validation(0)
    stream = Batches(data[500:], 128, sampling="shuffle", rng=rng)
    result = train(trainer, stream, validation, steps_per_epoch=100, max_epochs=12, patience=12)
    scores = result.history["validation_log_likelihood"]
    assert max(scores) > before + 0.5
    assert validation(0) == pytest.approx(max(scores))


def test_learning_rate_warms_up_and_falls_to_zero():
    trainer = LikelihoodTrainer(
        residual_model(1, 2), draws=1, learning_rate=1.0, averaging=0.0, rng=torch.Generator()
    )
    rates = []
    for step in range(1000):
        trainer.schedule(step / 999)
        rates.append(trainer._adam.param_groups[0]["lr"])
    assert rates[0] < 0.05
    assert 0.8 < max(rates) <= 1.0
    assert rates[-1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("skill", [1.0, 0.95])
def test_densities_from_the_encoders_posterior_are_exact(skill):
    """The posterior only starts the sampling: a wrong one costs draws, not truth."""
    data = correlated()
    model = residual_model(2, 3)
    start_at_principal_components(model, data)
    with torch.no_grad():
        model.encoder.direct.mul_(skill)
    weight, bias = (
        p.detach().double() for p in (model.generator.direct, model.generator.last.bias)
    )
    covariance = weight @ weight.mT + model.sigma.square() * torch.eye(3)
    x = data[:40].x
    exact = torch.distributions.MultivariateNormal(bias, covariance).log_prob(x).numpy()
    result = estimate(model, x)
    assert result.converged.all()
    assert np.abs((result.log_density - exact) / result.std_error).max() < 4.5


class LostEncoder(torch.nn.Module):
    """Knows the posterior near the data, and says zero far away."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x):
        known = x.abs().amax(dim=1, keepdim=True) < 3.5
        codes = self.encoder(x)
        lost = torch.cat([torch.zeros_like(codes[:, :2]), codes[:, 2:]], dim=1)
        return torch.where(known, codes, lost)


def test_rows_that_the_encoder_does_not_know_are_found():
    data = correlated()
    model = residual_model(2, 3)
    start_at_principal_components(model, data)
    weight, bias = (
        p.detach().double() for p in (model.generator.direct, model.generator.last.bias)
    )
    covariance = weight @ weight.mT + model.sigma.square() * torch.eye(3)
    model.encoder = LostEncoder(model.encoder)
    directions = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)).double()
    directions = directions / directions.norm(dim=1, keepdim=True)
    x = bias + 15 * directions @ weight.mT
    assert (x.abs().amax(dim=1) > 3.5).sum() > 10
    exact = torch.distributions.MultivariateNormal(bias, covariance).log_prob(x).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        result = estimate(model, x)
    z = (result.log_density - exact) / result.std_error
    assert result.converged.mean() > 0.9
    assert np.abs(z[result.converged]).max() < 5


def test_flat_weights_are_the_weights():
    rng = torch.Generator().manual_seed(0)
    network = mlp(2, 3, (4, 4), rng=rng)
    before = copy.deepcopy(network)
    (flat,) = flattened(network.parameters())
    network(torch.ones(1, 2)).sum().backward()
    before(torch.ones(1, 2)).sum().backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in before.parameters()])
    torch.testing.assert_close(flat.grad, expected)
    torch.optim.SGD([flat], lr=0.1).step()
    torch.optim.SGD(before.parameters(), lr=0.1).step()
    torch.testing.assert_close(network.state_dict(), before.state_dict())


def test_a_fitted_model_has_tensors_of_its_own(rng):
    """Views of one tensor would be written whole, once for each, by pickle."""
    objective = Likelihood(averaging=0.0, min_steps_per_epoch=4)
    est = Roundtrip(1, objective=objective, network=Residual(16, 1), max_epochs=1).fit(
        rng.normal(size=(40, 2))
    )
    for parameter in est.model_.parameters():
        assert parameter.untyped_storage().nbytes() == parameter.nbytes
        assert parameter.grad is None
