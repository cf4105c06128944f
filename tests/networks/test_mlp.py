import pytest
import torch
from torch import nn

from roundtrip.model.networks import discriminator, mlp


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_mlp_has_the_layers_asked_for():
    network = mlp(3, 5, (16, 8), generator=generator())
    shapes = [tuple(layer.weight.shape) for layer in network if isinstance(layer, nn.Linear)]
    assert shapes == [(16, 3), (8, 16), (5, 8)]
    assert network(torch.zeros(2, 3)).shape == (2, 5)
    assert all(layer.bias.eq(0).all() for layer in network if isinstance(layer, nn.Linear))


def test_weights_follow_the_generator_and_nothing_else():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first, again, other = (mlp(3, 5, (16,), generator=generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    assert torch.equal(torch.get_rng_state(), before)


def test_glorot_uniform():
    weight = mlp(100, 50, (200,), generator=generator())[0].weight.detach()
    limit = (6 / 300) ** 0.5
    assert weight.abs().max() <= limit
    assert weight.std() == pytest.approx(limit / 3**0.5, rel=0.02)


def test_activation_has_slope_one_fifth():
    network = mlp(1, 1, (1,), generator=generator())
    with torch.no_grad():
        for layer in (network[0], network[2]):
            layer.weight.fill_(1.0)
    assert network(torch.tensor([[3.0], [-3.0]])).flatten().tolist() == pytest.approx([3.0, -0.6])


def test_discriminator_judges_batches_side_by_side_as_it_does_alone():
    D = discriminator(4, (16, 16, 16), generator=generator())
    first, second = torch.randn(2, 32, 4, generator=generator(1))
    second = 5 * second + 3
    together = D(torch.stack([first, second], dim=1))
    torch.testing.assert_close(together[:, 0], D(first))
    torch.testing.assert_close(together[:, 1], D(second))


def test_discriminator_layers_are_batch_norm_and_tanh():
    """By hand, with torch's own batch norm."""
    D = discriminator(4, (16, 8), generator=generator())
    x = torch.randn(32, 4, generator=generator(1))
    norm = nn.BatchNorm1d(8)
    hidden = nn.functional.leaky_relu(D[0](x), 0.2)
    expected = D[-1](torch.tanh(norm(D[2](hidden))))
    torch.testing.assert_close(D(x), expected)
