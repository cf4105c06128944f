"""Densities that start from what the encoder says."""

import warnings

import numpy as np
import pytest
import torch
from oracles import correlated_rows, residual_model

from roundtrip import DensityWarning
from roundtrip.density import estimate
from roundtrip.training.principal import start_at_principal_components


@pytest.mark.parametrize("skill", [1.0, 0.95])
def test_densities_from_the_encoders_posterior_are_exact(skill):
    """The posterior only starts the sampling: a wrong one costs draws, not truth."""
    data = correlated_rows()
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
    data = correlated_rows()
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
