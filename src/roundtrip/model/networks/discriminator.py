"""D_x and D_z of eq. (13) for tables, as in the authors' code."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from roundtrip.model.networks.layers import leaky_relu, linear


def discriminator(
    in_features: int, hidden: Sequence[int], *, rng: torch.Generator
) -> nn.Sequential:
    """Return a network from `(rows, in_features)` to one score per row, `(rows, 1)`.

    The input may also hold several batches: `(rows, batches, in_features)` gives
    `(rows, batches, 1)`, and batch norm uses the statistics of each batch alone.

    Parameters
    ----------
    in_features : int
        Number of inputs.
    hidden : sequence of int
        Widths of the hidden layers. The first is leaky ReLU, the others are batch norm and tanh, as
        in the authors' code.
    rng : torch.Generator
        Source of the initial weights.

    Returns
    -------
    torch.nn.Sequential
        The network.

    Examples
    --------
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
    """Batch norm by the current batch, for `(rows, width)` or `(rows, batches, width)`.

    It keeps no running statistics, because discriminators are used in training only.

    Parameters
    ----------
    width : int
        Number of features.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each batch over its rows."""
        batches = x.shape[1] if x.ndim == 3 else 1
        # Several batches are more columns to batch norm, so that one call normalises all of them.
        columns = nn.functional.batch_norm(
            x.reshape(len(x), -1),
            running_mean=None,
            running_var=None,
            weight=self.weight.repeat(batches),
            bias=self.bias.repeat(batches),
            training=True,
        )
        return columns.view_as(x)
