"""The Jacobian of G."""

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.func import jvp, vmap

from roundtrip.model.core import RoundtripModel, dtype_of

NUMBERS_PER_CALL = 2**22


def rows_per_call(model: RoundtripModel, features: int, most: int) -> int:
    """Rows whose Jacobians are computed together: at most `most`, fewer if these are large."""
    return max(1, min(most, NUMBERS_PER_CALL // (model.latent_dim * features)))


def generator_jacobian(model: RoundtripModel, z: Tensor) -> tuple[Tensor, Tensor]:
    """G(z), `(rows, features)`, and its Jacobian, `(rows, features, latent_dim)`.

    Forward mode, all rows and directions together: as much work as 1 + latent_dim evaluations.
    """
    network = model.generator
    # Noise with a sigma is centred at G's outputs.
    if model.noise.sigma is not None and _is_leaky_mlp(network):
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
    z = z.to(dtype_of(network))
    directions = torch.eye(dim, dtype=z.dtype, device=z.device)
    # Values and, behind them, their slopes in each direction: `(1 + dim, rows, width)`.
    both = torch.cat([z[None], directions[:, None].expand(dim, rows, dim)])
    for layer in network:
        if isinstance(layer, nn.Linear):
            both = both @ layer.weight.T
            if layer.bias is not None:
                both[0] += layer.bias
        elif isinstance(layer, nn.LeakyReLU):
            slope = both.new_tensor(layer.negative_slope)
            both = both.mul_(torch.where(both[0] > 0, torch.ones_like(slope), slope))
    return both[0], both[1:].movedim(0, -1)
