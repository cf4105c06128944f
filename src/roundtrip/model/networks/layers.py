"""Layers that several networks share, with weights drawn from a given generator."""

import torch
from torch import nn

LEAKY_SLOPE = 0.2


def leaky_relu() -> nn.LeakyReLU:
    """A leaky ReLU with the slope of the authors' code."""
    return nn.LeakyReLU(LEAKY_SLOPE, inplace=True)  # the sign survives, so backward still works


def linear(in_features: int, out_features: int, rng: torch.Generator) -> nn.Linear:
    """A linear layer with Glorot weights and zero biases, drawn from `rng`."""
    # skip_init: the default initialisation would draw from torch's global random state.
    layer = nn.utils.skip_init(nn.Linear, in_features, out_features)
    nn.init.xavier_uniform_(layer.weight, generator=rng)
    nn.init.zeros_(layer.bias)
    return layer
