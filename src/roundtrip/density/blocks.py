"""Evaluation of networks in blocks of one fixed shape.

Matrix products may round differently for different numbers of rows. If every call of a network has
the same shape, the value of a row depends neither on the other rows nor on their number, and the
memory is bounded by the block.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

EVALUATIONS_PER_CALL = 512
"""Rows per call of G: enough for fast matrix products, few enough for the cache."""

ROWS_PER_ENCODER_CALL = 256


def padded_blocks(rows: Tensor, size: int) -> Iterator[tuple[Tensor, int]]:
    """Yield blocks of exactly `size` rows, each with its number of real rows.

    The last block is padded with copies of its last row.

    Examples
    --------
    >>> import torch
    >>> [(b.tolist(), n) for b, n in padded_blocks(torch.tensor([1, 2, 3]), 2)]
    [([1, 2], 2), ([3, 3], 1)]
    """
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        real = len(block)
        if real < size:
            block = torch.cat([block, block[-1:].expand(size - real, *block.shape[1:])])
        yield block, real


def map_blocks(
    function: Callable[..., Tensor], rows: Tensor | tuple[Tensor, ...], size: int
) -> Tensor:
    """Apply a function that treats each row separately in blocks of `size` rows.

    Parameters
    ----------
    function : callable
        Function of one tensor, or of as many as `rows` has.
    rows : Tensor or tuple of Tensor
        Tensors with the same number of rows, at least one.
    size : int
        Rows per block.

    Returns
    -------
    Tensor
        The results of all rows.

    Examples
    --------
    >>> import torch
    >>> map_blocks(lambda x: x * 2, torch.arange(3), 2)
    tensor([0, 2, 4])
    >>> map_blocks(lambda x, y: x * y, (torch.arange(3), torch.arange(3)), 2)
    tensor([0, 1, 4])
    """
    tensors = rows if isinstance(rows, tuple) else (rows,)
    # Results are written into one array at once. Many small results between the large temporary
    # arrays of the calls would fragment the memory.
    result: Tensor | None = None
    start = 0
    for blocks in zip(*(padded_blocks(part, size) for part in tensors), strict=True):
        real = blocks[0][1]
        values = function(*(block for block, _ in blocks))[:real]
        if result is None:
            result = values.new_empty(len(tensors[0]), *values.shape[1:])
        result[start : start + real] = values
        start += real
    assert result is not None, "no rows"
    return result
