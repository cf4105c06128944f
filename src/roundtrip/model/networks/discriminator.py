"""D_x and D_z for tables, as in the authors' own experiments."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from roundtrip.model.networks.layers import leaky_relu, linear


def discriminator(
    in_features: int, hidden: Sequence[int], *, rng: torch.Generator
) -> nn.Sequential:
    """Network from `(rows, in_features)` to one real-or-fake score a row, `(rows, 1)`.

    Several batches may be judged side by side: `(rows, batches, in_features)` gives
    `(rows, batches, 1)`, with each batch normalised by its own statistics.

    The first layer is leaky ReLU, the later ones are batch-normalised tanh, as in the authors'
    own experiments.

    >>> import torch
    >>> D = discriminator(5, hidden=(16, 16), rng=torch.Generator().manual_seed(0))
    >>> D(torch.zeros(3, 5)).shape
    torch.Size([3, 1])
    """
    layers: list[nn.Module] = []
    for depth, width in enumerate(hidden):
        layers.append(linear(in_features, width, rng))
        layers += [leaky_relu()] if depth == 0 else [BatchNorm(width), nn.Tanh()]
        in_features = width
    return nn.Sequential(*layers, linear(in_features, 1, rng))


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
