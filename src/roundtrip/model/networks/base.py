"""What every kind of network offers: G, H and D_x for given sizes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from roundtrip.model.networks.discriminator import discriminator
from roundtrip.parameters import Component

ImageShape = tuple[int, int, int]
"""Height, width, channels."""


@dataclass(frozen=True)
class Sizes:
    """What networks are built for.

    Attributes
    ----------
    features : int
        Columns of x.
    latent_dim : int
        Dimension of z.
    context_dim : int
        Numbers c per row that p(x | c) is conditioned on and that the network takes beside its
        input; 0: none.
    image_shape : tuple of int or None
        Height, width and channels if rows are flat images, channels last.
    """

    features: int
    latent_dim: int
    context_dim: int = 0
    image_shape: ImageShape | None = None


class Network(Component, ABC):
    """Settings of the networks: what `Roundtrip(network=...)` takes.

    Weights are drawn from `rng`, a CPU generator; never from torch's global state.
    """

    local = False
    """Whether a weight of H sees a few pixels of an image only."""

    @abstractmethod
    def generator(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> nn.Module:
        """G: `(rows, latent_dim + context_dim)` → `(rows, outputs)`, the context behind z."""

    @abstractmethod
    def encoder(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> nn.Module:
        """H: `(rows, features + context_dim)` → `(rows, outputs)`, the context behind x."""

    def discriminator(
        self, sizes: Sizes, hidden: Sequence[int], *, rng: torch.Generator
    ) -> nn.Module:
        """D_x: `(rows, features + context_dim)` → one score per row, `(rows, 1)`.

        Several batches may come side by side, `(rows, batches, features + context_dim)`. The
        fully connected network of the paper unless a subclass has another.
        """
        return discriminator(sizes.features + sizes.context_dim, hidden, rng=rng)
