import torch
from torch import nn

from roundtrip.model.networks import discriminator


def rng_of(seed=0):
    return torch.Generator().manual_seed(seed)


def test_discriminator_judges_batches_side_by_side_as_it_does_alone():
    D = discriminator(4, (16, 16, 16), rng=rng_of())
    first, second = torch.randn(2, 32, 4, generator=rng_of(1))
    second = 5 * second + 3
    together = D(torch.stack([first, second], dim=1))
    torch.testing.assert_close(together[:, 0], D(first))
    torch.testing.assert_close(together[:, 1], D(second))


def test_discriminator_layers_are_batch_norm_and_tanh():
    """By hand, with torch's own batch norm."""
    D = discriminator(4, (16, 8), rng=rng_of())
    x = torch.randn(32, 4, generator=rng_of(1))
    norm = nn.BatchNorm1d(8)
    hidden = nn.functional.leaky_relu(D[0](x), 0.2)
    expected = D[-1](torch.tanh(norm(D[2](hidden))))
    torch.testing.assert_close(D(x), expected)
