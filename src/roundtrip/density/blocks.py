"""Work through rows in blocks of one fixed shape.

Matrix products may round differently for different numbers of rows. When every call of a network
has the same shape, a row's value depends neither on the other rows nor on how many there are; and
memory is bounded by the block.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

EVALUATIONS_PER_CALL = 512
"""Rows of one call of G: large enough for a fast matrix product, small enough for the cache."""

ROWS_PER_ENCODER_CALL = 256


def padded_blocks(rows: Tensor, size: int) -> Iterator[tuple[Tensor, int]]:
    """Cut `rows` into blocks of exactly `size`, the last one padded with copies of its last row.

    Yields each block with the number of its rows that are real.

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
    """`function(rows)` for a function that treats each row by itself, in blocks of `size`.

    A tuple of tensors with equally many rows goes to a function of as many arguments.

    >>> import torch
    >>> map_blocks(lambda x: x * 2, torch.arange(3), 2)
    tensor([0, 2, 4])
    >>> map_blocks(lambda x, y: x * y, (torch.arange(3), torch.arange(3)), 2)
    tensor([0, 1, 4])
    """
    tensors = rows if isinstance(rows, tuple) else (rows,)
    # Results go to their place at once: kept one by one, small among the large arrays of the calls
    # that are freed between them, they would leave the memory in pieces too small for the next.
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
