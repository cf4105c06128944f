"""Endless batches of data rows, with replacement (as the paper) or by shuffled passes."""

from typing import Any, Self

import torch
from torch import Tensor

SAMPLING = ("replacement", "shuffle")


class Batches:
    """Endless batches `(batch_size, features)` of the rows of `data`.

    "shuffle" visits every row once before any row a second time; batches are always full, so a
    table smaller than a batch simply repeats within it. `jitter`, `(features,)`, is the width of
    uniform noise that is added anew each time.

    >>> import torch
    >>> stream = Batches(torch.arange(4.0)[:, None], 2, sampling="shuffle",
    ...                  generator=torch.Generator().manual_seed(0))
    >>> sorted(torch.cat([next(stream), next(stream)]).flatten().tolist())
    [0.0, 1.0, 2.0, 3.0]
    """

    def __init__(
        self,
        data: Tensor,
        batch_size: int,
        *,
        sampling: str,
        generator: torch.Generator,
        jitter: Tensor | None = None,
    ) -> None:
        self.data = data
        self.batch_size = batch_size
        self.sampling = sampling
        self.jitter = jitter
        self._generator = generator
        self._waiting = torch.empty(0, dtype=torch.int64, device=data.device)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Tensor:
        rows = self.data[self._indices()]
        return rows if self.jitter is None else jittered(rows, self.jitter, self._generator)

    def _indices(self) -> Tensor:
        n, device = len(self.data), self.data.device
        if self.sampling == "replacement":
            return torch.randint(n, (self.batch_size,), generator=self._generator, device=device)
        while len(self._waiting) < self.batch_size:
            order = torch.randperm(n, generator=self._generator, device=device)
            self._waiting = torch.cat([self._waiting, order])
        indices, self._waiting = self._waiting.tensor_split([self.batch_size])
        return indices

    def state_dict(self) -> dict[str, Any]:
        """All that the next batches depend on, besides the data."""
        return {"waiting": self._waiting.clone(), "generator": self._generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict`."""
        self._waiting = state["waiting"].to(self.data.device)
        self._generator.set_state(state["generator"])


def jittered(rows: Tensor, width: Tensor, generator: torch.Generator) -> Tensor:
    """Rows spread evenly over intervals of `width`, `(features,)`, around their values."""
    level = torch.rand(rows.shape, generator=generator, device=rows.device, dtype=rows.dtype)
    return rows + (level - 0.5) * width
