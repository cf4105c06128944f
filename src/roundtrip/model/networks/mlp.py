"""Fully connected networks with leaky ReLU: G and H of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from roundtrip.model.networks.base import Network, Sizes
from roundtrip.model.networks.layers import leaky_relu, linear
from roundtrip.parameters import check_widths


@dataclass(frozen=True, repr=False)
class MLP(Network):  # numpydoc ignore=PR02
    """Fully connected networks with leaky ReLU, as in the paper.

    Parameters
    ----------
    generator_widths : sequence of int, default=(128, 128, 128)
        Widths of the hidden layers of G. The paper uses ``(512,) * 10``.
    encoder_widths : sequence of int, default=(128, 128, 128)
        Widths of the hidden layers of H. The paper uses ``(256,) * 10``.

    Examples
    --------
    >>> MLP(generator_widths=(64, 64)).encoder_widths
    (128, 128, 128)
    """

    generator_widths: Sequence[int] = (128,) * 3
    encoder_widths: Sequence[int] = (128,) * 3

    def check(self) -> None:
        """Check the widths."""
        check_widths("generator_widths", self.generator_widths)
        check_widths("encoder_widths", self.encoder_widths)

    def generator(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> nn.Sequential:
        """Return G."""
        return mlp(sizes.latent_dim + sizes.context_dim, outputs, self.generator_widths, rng=rng)

    def encoder(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> nn.Sequential:
        """Return H."""
        return mlp(sizes.features + sizes.context_dim, outputs, self.encoder_widths, rng=rng)


def mlp(
    in_features: int, out_features: int, hidden: Sequence[int], *, rng: torch.Generator
) -> nn.Sequential:
    """Return a leaky ReLU network from `(rows, in_features)` to `(rows, out_features)`.

    Parameters
    ----------
    in_features, out_features : int
        Number of inputs and of outputs.
    hidden : sequence of int
        Widths of the hidden layers.
    rng : torch.Generator
        Source of the initial weights.

    Returns
    -------
    torch.nn.Sequential
        The network.

    Examples
    --------
    >>> import torch
    >>> G = mlp(2, 5, hidden=(16, 16), rng=torch.Generator().manual_seed(0))
    >>> G(torch.zeros(3, 2)).shape
    torch.Size([3, 5])
    """
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [linear(in_features, width, rng), leaky_relu()]
        in_features = width
    return nn.Sequential(*layers, linear(in_features, out_features, rng))
