"""Fully connected networks for tables: G and H (`mlp`), D_x and D_z (`discriminator`)."""

from collections.abc import Sequence

import torch
from torch import nn

LEAKY_SLOPE = 0.2


def mlp(
    in_features: int, out_features: int, hidden: Sequence[int], *, generator: torch.Generator
) -> nn.Sequential:
    """Leaky-ReLU network from `(rows, in_features)` to `(rows, out_features)`.

    `hidden` gives the width of each hidden layer; the paper's G is ``(512,) * 10``.

    >>> import torch
    >>> G = mlp(2, 5, hidden=(16, 16), generator=torch.Generator().manual_seed(0))
    >>> G(torch.zeros(3, 2)).shape
    torch.Size([3, 5])
    """
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [_linear(in_features, width, generator), nn.LeakyReLU(LEAKY_SLOPE)]
        in_features = width
    return nn.Sequential(*layers, _linear(in_features, out_features, generator))


def discriminator(
    in_features: int, hidden: Sequence[int], *, generator: torch.Generator
) -> nn.Sequential:
    """Network from `(rows, in_features)` to one real-or-fake score a row, `(rows, 1)`.

    The first layer is leaky ReLU, the later ones are batch-normalised tanh, as in the authors'
    own experiments.

    >>> import torch
    >>> D = discriminator(5, hidden=(16, 16), generator=torch.Generator().manual_seed(0))
    >>> D(torch.zeros(3, 5)).shape
    torch.Size([3, 1])
    """
    layers: list[nn.Module] = []
    for depth, width in enumerate(hidden):
        layers.append(_linear(in_features, width, generator))
        layers += [nn.LeakyReLU(LEAKY_SLOPE)] if depth == 0 else [nn.BatchNorm1d(width), nn.Tanh()]
        in_features = width
    return nn.Sequential(*layers, _linear(in_features, 1, generator))


def _linear(in_features: int, out_features: int, generator: torch.Generator) -> nn.Linear:
    # skip_init: the default initialisation would draw from torch's global random state.
    layer = nn.utils.skip_init(nn.Linear, in_features, out_features)
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer
