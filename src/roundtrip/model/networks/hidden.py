"""Which weights of a network lie between hidden layers: they are trained in their own way."""

from typing import cast

from torch import nn

from roundtrip.model.networks.residual import ResidualMLP


def hidden_weights(network: nn.Module) -> list[nn.Parameter]:
    """The matrices from hidden layer to hidden layer of a `ResidualMLP` or an `mlp`; else none."""
    if isinstance(network, ResidualMLP):
        return [weight for weight in network.blocks.parameters() if weight.ndim == 2]
    if not isinstance(network, nn.Sequential):
        return []
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    return [cast(nn.Parameter, layer.weight) for layer in layers[1:-1]]
