"""Residual networks for tables: deep enough to bend sharply, easy to train fast."""

import torch
from torch import Tensor, nn

from roundtrip.model.networks.mlp import linear


class ResidualMLP(nn.Module):
    """`(rows, in_features)` → `(rows, out_features)` by blocks ``h + W₂ silu(W₁ norm(h))``.

    The last layer also sees the input itself. Blocks start as the identity and the last layer at
    zero, but for a linear map of the input to the first `linear_outputs` outputs, which is all that
    the network is before training.

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
        self.normed = nn.Sequential(nn.LayerNorm(width), nn.SiLU())
        self.last = _zero(linear(width + in_features, out_features, generator))
        nn.init.xavier_uniform_(self.direct[:linear_outputs], generator=generator)

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
