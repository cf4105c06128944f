"""Layers that several networks share, with initial weights from a given generator."""

import torch
from torch import nn

from roundtrip.model.networks.products import Linear

LEAKY_SLOPE = 0.2


def leaky_relu() -> nn.LeakyReLU:
    """Return a leaky ReLU with the slope of the authors' code."""
    return nn.LeakyReLU(LEAKY_SLOPE, inplace=True)  # backward needs only the sign, which is kept


def linear(in_features: int, out_features: int, rng: torch.Generator) -> Linear:
    """Return a linear layer with Glorot-uniform weights from `rng` and zero biases."""
    # skip_init, because the default initialisation draws from torch's global state.
    layer = nn.utils.skip_init(Linear, in_features, out_features)
    nn.init.xavier_uniform_(layer.weight, generator=rng)
    nn.init.zeros_(layer.bias)
    return layer
