"""Many parameters in one tensor, so that an optimiser step is a few large operations."""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn


def flattened(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """Move parameters into flat tensors, one per dtype.

    The parameters become views of the flat tensors, and their gradients become views of the flat
    gradients, so that a change of one changes the other. Gradients must be zeroed, never set to
    None.

    Parameters
    ----------
    parameters : iterable of torch.nn.Parameter
        The parameters, which are changed in place.

    Returns
    -------
    list of Tensor
        The flat tensors.

    Examples
    --------
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
    """Move matrices into stacks `(count, rows, columns)`, one per shape; see `flattened`."""
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
