"""The Jacobian of G."""

import torch
from torch import Tensor
from torch.func import jvp, vmap

from roundtrip.model import RoundtripModel


def generator_jacobian(model: RoundtripModel, z: Tensor) -> tuple[Tensor, Tensor]:
    """G(z), `(rows, features)`, and its Jacobian, `(rows, features, latent_dim)`.

    Forward mode, all rows and directions together: as much work as 1 + latent_dim evaluations.
    """

    def along(direction: Tensor) -> tuple[Tensor, Tensor]:
        generated, column = jvp(model.generate, (z,), (direction.expand_as(z),))[:2]
        return generated, column

    directions = torch.eye(model.latent_dim, dtype=z.dtype, device=z.device)
    generated, columns = vmap(along)(directions)
    return generated[0], columns.movedim(0, -1)
