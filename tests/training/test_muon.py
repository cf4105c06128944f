"""Muon against the singular value decomposition, and as part of training."""

import copy

import pytest
import torch

from roundtrip.model.networks import ResidualMLP, hidden_weights, mlp
from roundtrip.training.flat import stacked
from roundtrip.training.muon import Muon, orthogonalised


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 24, 8), (2, 8, 24)])
def test_singular_vectors_stay_and_singular_values_become_about_one(shape):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    U, _, Vt = torch.linalg.svd(matrices, full_matrices=False)
    inner = U.mT @ orthogonalised(matrices) @ Vt.mT
    values = inner.diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(inner, torch.diag_embed(values), atol=1e-4, rtol=0)
    assert values.min() > 0.5
    assert values.max() < 1.3


def test_a_gradient_of_zero_moves_nothing():
    weights = torch.ones(2, 4, 4)
    weights.grad = torch.zeros_like(weights)
    Muon([weights], lr=0.1).step()
    torch.testing.assert_close(weights, torch.ones(2, 4, 4))


def test_minimises_a_quadratic():
    target = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(0))
    weights = torch.zeros_like(target)
    optimizer = Muon([weights], lr=0.1)
    for step in range(300):
        optimizer.lr = 0.1 * (1 - step / 300)
        weights.grad = weights - target
        optimizer.step()
    assert (weights - target).abs().max() < 0.02


def test_resumes_from_its_state():
    gradients = torch.randn(6, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    weights = torch.zeros(2, 4, 4)
    optimizer = Muon([weights], lr=0.1)
    copied = None
    for step, gradient in enumerate(gradients):
        if step == 3:
            copied = weights.clone()
            resumed = Muon([copied], lr=0.1)
            resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for matrices, each in ((weights, optimizer), (copied, resumed if step >= 3 else None)):
            if each is not None:
                matrices.grad = gradient.clone()
                each.step()
    torch.testing.assert_close(weights, copied, atol=0, rtol=0)


def test_hidden_weights_are_those_between_hidden_layers():
    rng = torch.Generator().manual_seed(0)
    residual = ResidualMLP(2, 5, width=8, blocks=2, linear_outputs=3, rng=rng)
    assert [w.shape for w in hidden_weights(residual)] == [(8, 8)] * 4
    plain = mlp(2, 3, (8, 8, 6), rng=rng)
    assert [w.shape for w in hidden_weights(plain)] == [(8, 8), (6, 8)]
    assert hidden_weights(mlp(2, 3, (8,), rng=rng)) == []


def test_stacks_are_the_weights_and_gradients():
    plain = mlp(2, 3, (8, 8, 8, 6), rng=torch.Generator().manual_seed(0))
    hidden = hidden_weights(plain)
    stacks = stacked(hidden)
    assert [stack.shape for stack in stacks] == [(2, 8, 8), (1, 6, 8)]
    plain(torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(stacks[0].grad[1], hidden[1].grad)
    stacks[0][1] = 3.0
    assert (hidden[1] == 3.0).all()


def test_momentum_that_dies_out_leaves_finite_weights():
    """One gradient and then none: the momentum falls below what float32 can square."""
    weights = torch.zeros(1, 8, 8)
    optimizer = Muon([weights], lr=1e-3)
    weights.grad = torch.randn(1, 8, 8, generator=torch.Generator().manual_seed(0))
    for _ in range(2000):
        optimizer.step()
        weights.grad = torch.zeros_like(weights)
    assert weights.isfinite().all()
