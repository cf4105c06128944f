"""The Jacobian of G."""

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.func import jvp, vmap

from roundtrip.model import RoundtripModel
from roundtrip.noise import ConstantGaussian


def generator_jacobian(model: RoundtripModel, z: Tensor) -> tuple[Tensor, Tensor]:
    """G(z), `(rows, features)`, and its Jacobian, `(rows, features, latent_dim)`.

    Forward mode, all rows and directions together: as much work as 1 + latent_dim evaluations.
    """
    network = model.generator
    if isinstance(model.noise, ConstantGaussian) and _is_leaky_mlp(network):
        return _leaky_mlp_jacobian(network, z)

    def along(direction: Tensor) -> tuple[Tensor, Tensor]:
        generated, column = jvp(model.generate, (z,), (direction.expand_as(z),))[:2]
        return generated, column

    directions = torch.eye(model.latent_dim, dtype=z.dtype, device=z.device)
    generated, columns = vmap(along)(directions)
    return generated[0], columns.movedim(0, -1)


def _is_leaky_mlp(network: nn.Module) -> TypeGuard[nn.Sequential]:
    return type(network) is nn.Sequential and all(
        type(layer) in (nn.Linear, nn.LeakyReLU) for layer in network
    )


def _leaky_mlp_jacobian(network: nn.Sequential, z: Tensor) -> tuple[Tensor, Tensor]:
    """The same by hand for the paper's networks: one matrix product a layer, and less overhead."""
    rows, dim = z.shape
    z = z.to(next((p.dtype for p in network.parameters()), torch.get_default_dtype()))
    directions = torch.eye(dim, dtype=z.dtype, device=z.device)
    values, slopes = z, directions[:, None].expand(dim, rows, dim)
    for layer in network:
        if isinstance(layer, nn.Linear):
            both = torch.cat([values[None], slopes]) @ layer.weight.T
            values, slopes = both[0], both[1:]
            if layer.bias is not None:
                values = values + layer.bias
        elif isinstance(layer, nn.LeakyReLU):
            factor = torch.where(values > 0, 1.0, layer.negative_slope)
            values, slopes = values * factor, slopes * factor
    return values, slopes.movedim(0, -1)
