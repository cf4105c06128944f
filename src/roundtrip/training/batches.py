"""Endless batches of data rows, with replacement (as the paper) or by shuffled passes."""

from collections.abc import Iterator

import torch
from torch import Tensor

SAMPLING = ("replacement", "shuffle")


def batches(
    data: Tensor,
    batch_size: int,
    *,
    sampling: str,
    generator: torch.Generator,
    jitter: Tensor | None = None,
) -> Iterator[Tensor]:
    """Yield `(batch_size, features)` batches for ever.

    "shuffle" visits every row once before any row a second time; batches are always full, so a
    table smaller than a batch simply repeats within it. `jitter`, `(features,)`, is the width of
    uniform noise that is added anew each time.

    >>> import torch
    >>> stream = batches(torch.arange(4.0)[:, None], 2, sampling="shuffle",
    ...                  generator=torch.Generator().manual_seed(0))
    >>> sorted(torch.cat([next(stream), next(stream)]).flatten().tolist())
    [0.0, 1.0, 2.0, 3.0]
    """
    waiting = torch.empty(0, dtype=torch.int64, device=data.device)
    while True:
        if sampling == "replacement":
            index = torch.randint(len(data), (batch_size,), generator=generator, device=data.device)
        else:
            while len(waiting) < batch_size:
                order = torch.randperm(len(data), generator=generator, device=data.device)
                waiting = torch.cat([waiting, order])
            index, waiting = waiting[:batch_size], waiting[batch_size:]
        yield data[index] if jitter is None else jittered(data[index], jitter, generator)


def jittered(rows: Tensor, width: Tensor, generator: torch.Generator) -> Tensor:
    """Rows spread evenly over intervals of `width`, `(features,)`, around their values."""
    level = torch.rand(rows.shape, generator=generator, device=rows.device, dtype=rows.dtype)
    return rows + (level - 0.5) * width
