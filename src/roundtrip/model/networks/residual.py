"""Residual networks for tables: deep enough to bend sharply, easy to train fast."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from roundtrip.model.networks.base import Network, Sizes
from roundtrip.model.networks.layers import linear
from roundtrip.parameters import check_integer


@dataclass(frozen=True, repr=False)
class Residual(Network):
    """Residual networks: a linear map plus blocks that begin at zero.

    Parameters
    ----------
    width : int, default=128
        Width of the blocks of G and H.
    blocks : int, default=3
        Residual blocks of G and of H.
    """

    width: int = 128
    blocks: int = 3

    def check(self) -> None:
        """Check both numbers."""
        check_integer("width", self.width, minimum=1)
        check_integer("blocks", self.blocks, minimum=1)

    def generator(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> "ResidualMLP":
        """G, whose first outputs, where the features lie, begin as a linear map."""
        inputs = sizes.latent_dim + sizes.context_dim
        return self._network(inputs, outputs, sizes.features, rng)

    def encoder(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> "ResidualMLP":
        """H, which begins as a linear map."""
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

    The last layer also sees the input itself. Blocks start as the identity and the last layer at
    zero, but for a linear map of the input to the first `linear_outputs` outputs, which is all that
    the network is before training.

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
        """The part of the last layer that sees the input, `(out_features, in_features)`."""
        return self.last.weight[:, -self.first.in_features :]

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to rows."""
        hidden = self.first(x)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        # Side by side: a sum of two layers would pass over all outputs once more, and back.
        outputs: Tensor = self.last(torch.cat([self.normed(hidden), x], dim=-1))
        return outputs


def _zero(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    return layer
