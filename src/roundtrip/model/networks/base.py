"""Base class of network settings, which build G, H and D_x for given sizes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from roundtrip.model.columns import Columns
from roundtrip.model.networks.discriminator import discriminator
from roundtrip.parameters import Component

ImageShape = tuple[int, int, int]
"""Height, width, channels."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the rows, codes and context that networks are built for.

    Attributes
    ----------
    features : int
        Number of features of x.
    latent_dim : int
        Dimension of z.
    context_dim : int
        Length of the context c that is appended to the input of the network; 0 without a context.
    image_shape : tuple of int or None
        Height, width and channels if rows are flat images, channels last.
    columns : Columns or None
        Kinds of the features of mixed or incomplete rows; None for complete numbers.

    Examples
    --------
    >>> Sizes(features=784, latent_dim=10, image_shape=(28, 28, 1)).context_dim
    0
    """

    features: int
    latent_dim: int
    context_dim: int = 0
    image_shape: ImageShape | None = None
    columns: Columns | None = None


class Network(Component, ABC):
    """Base class of the settings of networks, `Roundtrip(network=...)`.

    Initial weights are drawn from `rng`, a generator on the CPU, never from torch's global state.
    """

    local = False
    """Whether each weight of H sees only a few pixels of an image."""

    @abstractmethod
    def generator(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> nn.Module:
        """Return G: z with its context, `(rows, latent_dim + context_dim)` → `(rows, outputs)`."""

    @abstractmethod
    def encoder(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> nn.Module:
        """Return H: x with its context, `(rows, features + context_dim)` → `(rows, outputs)`."""

    def discriminator(
        self, sizes: Sizes, hidden: Sequence[int], *, rng: torch.Generator
    ) -> nn.Module:
        """Return D_x: `(rows, features + context_dim)` → one score per row, `(rows, 1)`.

        The input may also hold several batches, `(rows, batches, features + context_dim)`. Unless a
        subclass overrides this method, D_x is the paper's fully connected network.
        """
        return discriminator(sizes.features + sizes.context_dim, hidden, rng=rng)
