"""All weights of a model in one tensor: going through a list of them takes long in small steps."""

from collections import defaultdict

import torch
from torch import Tensor, nn


def flattened(module: nn.Module) -> list[Tensor]:
    """Move the parameters of `module` into flat tensors, one for each dtype, which are returned.

    The parameters become views of them, and their gradients views of the flat tensors' gradients,
    so that a change of either is a change of both. Gradients must be zeroed, not set to None.

    >>> import torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> (flat,) = flattened(layer)
    >>> _ = flat.fill_(3.0)
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[3.0, 3.0]], [3.0])
    """
    by_dtype: dict[torch.dtype, list[nn.Parameter]] = defaultdict(list)
    for parameter in module.parameters():
        by_dtype[parameter.dtype].append(parameter)
    return [_flat(parameters) for parameters in by_dtype.values()]


def _flat(parameters: list[nn.Parameter]) -> Tensor:
    flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
    flat.grad = torch.zeros_like(flat)
    sizes = [parameter.numel() for parameter in parameters]
    for parameter, values, gradient in zip(
        parameters, flat.split(sizes), flat.grad.split(sizes), strict=True
    ):
        parameter.data = values.view_as(parameter)
        parameter.grad = gradient.view_as(parameter)
    return flat
