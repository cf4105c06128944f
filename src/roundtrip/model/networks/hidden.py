"""The weight matrices between hidden layers, which Muon trains."""

from typing import cast

from torch import nn

from roundtrip.model.networks.residual import ResidualMLP


def hidden_weights(network: nn.Module) -> list[nn.Parameter]:
    """Return the matrices between hidden layers of a `ResidualMLP` or `mlp`, otherwise none."""
    if isinstance(network, ResidualMLP):
        return [weight for weight in network.blocks.parameters() if weight.ndim == 2]
    if not isinstance(network, nn.Sequential):
        return []
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    return [cast(nn.Parameter, layer.weight) for layer in layers[1:-1]]
