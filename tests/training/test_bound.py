import pytest
import torch
from oracles import LinearModel, correlated_rows, residual_model

from roundtrip.data import Rows
from roundtrip.training.bound import importance_weighted_bound
from roundtrip.training.principal import start_at_principal_components


@pytest.mark.parametrize("n_draws", [1, 8])
def test_the_bound_is_below_the_log_density_and_rises_with_draws(n_draws):
    linear = LinearModel(2, 3, sigma=0.5)
    x = linear.points(400)
    rows = Rows.without_context(torch.from_numpy(x).float())
    model = residual_model(2, 3)
    start_at_principal_components(model, correlated_rows())  # a posterior of another model
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
    data = correlated_rows(64)
    model = residual_model(2, 3)
    start_at_principal_components(model, correlated_rows())
    bound = importance_weighted_bound(
        model, data.to(torch.float32), n_draws=1, rng=torch.Generator().manual_seed(3)
    ).mean()
    (gradient,) = torch.autograd.grad(bound, model.encoder.last.bias)
    assert gradient[:2].abs().max() < 0.05
    assert gradient.abs().mean() < 0.02
