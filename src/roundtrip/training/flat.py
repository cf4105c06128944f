"""Many weights in one tensor: going through a list of them takes long in small steps."""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn


def flattened(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Move parameters into flat tensors, one for each dtype, which are returned.

    The parameters become views of them, and their gradients views of the flat tensors' gradients,
    so that a change of either is a change of both. Gradients must be zeroed, not set to None.

    >>> import torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> (flat,) = flattened(layer.parameters())
    >>> _ = flat.fill_(3.0)
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[3.0, 3.0]], [3.0])
    """
    by_dtype: dict[torch.dtype, list[nn.Parameter]] = defaultdict(list)
    for parameter in parameters:
        by_dtype[parameter.dtype].append(parameter)
    return [_flat(group) for group in by_dtype.values()]


def stacked(matrices: Iterable[nn.Parameter]) -> list[Tensor]:
    """Like `flattened`, but matrices of the same shape into stacks `(count, rows, columns)`."""
    by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
    for matrix in matrices:
        by_shape[matrix.shape].append(matrix)
    stacks = []
    for shape, group in by_shape.items():
        for flat in flattened(group):
            stack = flat.view(-1, *shape)
            assert flat.grad is not None
            stack.grad = flat.grad.view_as(stack)
            stacks.append(stack)
    return stacks


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
