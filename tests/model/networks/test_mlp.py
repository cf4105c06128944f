import pytest
import torch
from torch import nn

from roundtrip.model.networks import mlp


def rng_of(seed=0):
    return torch.Generator().manual_seed(seed)


def test_mlp_has_the_layers_asked_for():
    network = mlp(3, 5, (16, 8), rng=rng_of())
    shapes = [tuple(layer.weight.shape) for layer in network if isinstance(layer, nn.Linear)]
    assert shapes == [(16, 3), (8, 16), (5, 8)]
    assert network(torch.zeros(2, 3)).shape == (2, 5)
    assert all(layer.bias.eq(0).all() for layer in network if isinstance(layer, nn.Linear))


def test_weights_follow_the_random_generator_and_nothing_else():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again, other = (mlp(3, 5, (16,), rng=rng_of(seed)) for seed in (0, 0, 1))
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    assert torch.equal(torch.get_rng_state(), before)


def test_glorot_uniform():
    weight = mlp(100, 50, (200,), rng=rng_of())[0].weight.detach()
    limit = (6 / 300) ** 0.5
    assert weight.abs().max() <= limit
    assert weight.std() == pytest.approx(limit / 3**0.5, rel=0.02)


def test_activation_has_slope_one_fifth():
    network = mlp(1, 1, (1,), rng=rng_of())
    with torch.no_grad():
        for layer in (network[0], network[2]):
            layer.weight.fill_(1.0)
    assert network(torch.tensor([[3.0], [-3.0]])).flatten().tolist() == pytest.approx([3.0, -0.6])
