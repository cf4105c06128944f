"""Residual networks for tables: deep enough to bend sharply, easy to train fast."""

import torch
from torch import Tensor, nn

from roundtrip.networks.mlp import linear


class ResidualMLP(nn.Module):
    """`(rows, in_features)` → `(rows, out_features)` by blocks ``h + W₂ silu(W₁ norm(h))``.

    The first `linear_outputs` outputs also get a linear map of the input. Blocks start as the
    identity and the last layer at zero, so that before training the network is that linear map.

    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> G = ResidualMLP(2, 5, width=16, blocks=2, linear_outputs=3, generator=generator)
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
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.linear = linear(in_features, linear_outputs, generator)
        self.first = linear(in_features, width, generator)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                linear(width, width, generator),
                nn.SiLU(),
                _zero(linear(width, width, generator)),
            )
            for _ in range(blocks)
        )
        self.last = nn.Sequential(
            nn.LayerNorm(width), nn.SiLU(), _zero(linear(width, out_features, generator))
        )

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to rows."""
        hidden = self.first(x)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        outputs: Tensor = self.last(hidden)
        outputs[..., : self.linear.out_features] += self.linear(x)
        return outputs


def _zero(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    return layer
