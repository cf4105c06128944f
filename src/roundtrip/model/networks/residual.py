"""Residual networks, the default for tables: G and H that start as linear maps."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from roundtrip.model.networks.base import Network, Sizes
from roundtrip.model.networks.layers import linear
from roundtrip.model.networks.products import Linear
from roundtrip.parameters import check_integer


@dataclass(frozen=True, repr=False)
class Residual(Network):  # numpydoc ignore=PR02
    """Residual networks: a linear map plus residual blocks, which add nothing before training.

    Parameters
    ----------
    width : int, default=128
        Width of the residual blocks of G and of H.
    blocks : int, default=3
        Number of residual blocks of G and of H.

    Examples
    --------
    >>> Residual(width=64).blocks
    3
    """

    width: int = 128
    blocks: int = 3

    def check(self) -> None:
        """Check both settings."""
        check_integer("width", self.width, minimum=1)
        check_integer("blocks", self.blocks, minimum=1)

    def generator(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> "ResidualMLP":
        """Return G, whose first outputs, the locations of the features, start as a linear map."""
        inputs = sizes.latent_dim + sizes.context_dim
        return self._network(inputs, outputs, sizes.features, rng)

    def encoder(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> "ResidualMLP":
        """Return H, which starts as a linear map."""
        return self._network(sizes.features + sizes.context_dim, outputs, outputs, rng)

    def _network(
        self, inputs: int, outputs: int, linear_outputs: int, rng: torch.Generator
    ) -> "ResidualMLP":
        return ResidualMLP(
            inputs,
            outputs,
            width=self.width,
            blocks=self.blocks,
            linear_outputs=linear_outputs,
            rng=rng,
        )


class ResidualMLP(nn.Module):
    """`(rows, in_features)` → `(rows, out_features)` by blocks ``h + W₂ silu(W₁ norm(h))``.

    The last layer also takes the input of the network. The blocks start as the identity and the
    last layer at zero, except for a linear map of the input to the first outputs. Before training
    the network is this linear map.

    Parameters
    ----------
    in_features, out_features : int
        Number of inputs and of outputs.
    width : int
        Width of the blocks.
    blocks : int
        Number of blocks.
    linear_outputs : int
        Number of outputs that start as a linear map; the others start at zero.
    rng : torch.Generator
        Source of the initial weights.

    Examples
    --------
    >>> import torch
    >>> rng = torch.Generator().manual_seed(0)
    >>> G = ResidualMLP(2, 5, width=16, blocks=2, linear_outputs=3, rng=rng)
    >>> G(torch.zeros(3, 2)).shape
    torch.Size([3, 5])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        width: int,
        blocks: int,
        linear_outputs: int,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        self.first = linear(in_features, width, rng)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                linear(width, width, rng),
                nn.SiLU(),
                _zero(linear(width, width, rng)),
            )
            for _ in range(blocks)
        )
        self.normed = nn.Sequential(nn.LayerNorm(width), nn.SiLU())
        self.last = _zero(linear(width + in_features, out_features, rng))
        nn.init.xavier_uniform_(self.direct[:linear_outputs], generator=rng)

    @property
    def direct(self) -> Tensor:
        """Weights of the last layer for the input, `(out_features, in_features)`."""
        return self.last.weight[:, -self.first.in_features :]

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to rows."""
        hidden = self.first(x)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        # One layer of both inputs: a sum of two layers takes one more pass over all outputs.
        outputs: Tensor = self.last(torch.cat([self.normed(hidden), x], dim=-1))
        return outputs


def _zero(layer: Linear) -> Linear:
    nn.init.zeros_(layer.weight)
    return layer
