"""Fully connected networks for tables: G and H (`mlp`), D_x and D_z (`discriminator`)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

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
        layers += [linear(in_features, width, generator), _leaky_relu()]
        in_features = width
    return nn.Sequential(*layers, linear(in_features, out_features, generator))


def discriminator(
    in_features: int, hidden: Sequence[int], *, generator: torch.Generator
) -> nn.Sequential:
    """Network from `(rows, in_features)` to one real-or-fake score a row, `(rows, 1)`.

    Several batches may be judged side by side: `(rows, batches, in_features)` gives
    `(rows, batches, 1)`, with each batch normalised by its own statistics.

    The first layer is leaky ReLU, the later ones are batch-normalised tanh, as in the authors'
    own experiments.

    >>> import torch
    >>> D = discriminator(5, hidden=(16, 16), generator=torch.Generator().manual_seed(0))
    >>> D(torch.zeros(3, 5)).shape
    torch.Size([3, 1])
    """
    layers: list[nn.Module] = []
    for depth, width in enumerate(hidden):
        layers.append(linear(in_features, width, generator))
        layers += [_leaky_relu()] if depth == 0 else [BatchNorm(width), nn.Tanh()]
        in_features = width
    return nn.Sequential(*layers, linear(in_features, 1, generator))


class BatchNorm(nn.Module):
    """Batch norm of the current batch, for `(rows, width)` or `(rows, batches, width)`.

    It keeps no running statistics: a discriminator is only ever used in training.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each batch over its rows."""
        batches = x.shape[1] if x.ndim == 3 else 1
        # Batches side by side are to batch norm just more columns: one call serves them all.
        columns = nn.functional.batch_norm(
            x.reshape(len(x), -1),
            running_mean=None,
            running_var=None,
            weight=self.weight.repeat(batches),
            bias=self.bias.repeat(batches),
            training=True,
        )
        return columns.view_as(x)


def _leaky_relu() -> nn.LeakyReLU:
    return nn.LeakyReLU(LEAKY_SLOPE, inplace=True)  # the sign survives, so backward still works


def linear(in_features: int, out_features: int, generator: torch.Generator) -> nn.Linear:
    """A linear layer with Glorot weights and zero biases, drawn from `generator`."""
    # skip_init: the default initialisation would draw from torch's global random state.
    layer = nn.utils.skip_init(nn.Linear, in_features, out_features)
    nn.init.xavier_uniform_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer
