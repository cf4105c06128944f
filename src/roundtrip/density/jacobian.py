"""The Jacobian of G, which linearises G at a point, eq. (6)."""

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.func import jvp, vmap

from roundtrip.model.core import RoundtripModel, dtype_of
from roundtrip.model.networks import Linear, plain_products

NUMBERS_PER_CALL = 2**22


def rows_per_call(model: RoundtripModel, features: int, most: int) -> int:
    """Return the number of Jacobians per call: `most`, or fewer if they are large."""
    return max(1, min(most, NUMBERS_PER_CALL // (model.latent_dim * features)))


def generator_jacobian(model: RoundtripModel, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return G(z) and its Jacobian ∇G(z) of eq. (6), both of every row.

    Their shapes are `(rows, features)` and `(rows, features, latent_dim)`. Forward-mode
    differentiation of all rows and directions costs 1 + latent_dim evaluations of G per row.
    """
    network = model.generator
    # With a constant sigma, E(x | z) is the output of G.
    if model.noise.sigma is not None and _is_leaky_mlp(network):
        return _leaky_mlp_jacobian(network, z)

    def along(direction: Tensor) -> tuple[Tensor, Tensor]:
        generated, column = jvp(model.generate, (z,), (direction.expand_as(z),))[:2]
        return generated, column

    directions = torch.eye(model.latent_dim, dtype=z.dtype, device=z.device)
    with plain_products():
        generated, columns = vmap(along)(directions)
    return generated[0], columns.movedim(0, -1)


def _is_leaky_mlp(network: nn.Module) -> TypeGuard[nn.Sequential]:
    return type(network) is nn.Sequential and all(
        type(layer) in (nn.Linear, Linear, nn.LeakyReLU) for layer in network
    )


def _leaky_mlp_jacobian(network: nn.Sequential, z: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the same for the paper's networks, by one matrix product per layer: faster."""
    rows, dim = z.shape
    z = z.to(dtype_of(network))
    directions = torch.eye(dim, dtype=z.dtype, device=z.device)
    # Values, followed by their slopes in each direction: `(1 + dim, rows, width)`.
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
