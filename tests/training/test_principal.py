import math

import pytest
import torch
from oracles import correlated_rows, residual_model

from roundtrip.training.bound import importance_weighted_bound
from roundtrip.training.principal import start_at_principal_components


def gaussian_log_likelihood(x):
    covariance = torch.cov(x.mT, correction=0)
    return float(-0.5 * (torch.logdet(2 * math.pi * covariance) + x.shape[1]))


def test_principal_components_start_at_the_best_linear_model():
    """With as many latent dimensions as needed, PPCA is as likely as the Gaussian of the data."""
    data = correlated_rows()
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
