"""A pool of earlier fakes, as in the authors' code: D_x and D_z are trained on old fakes, too."""

import random
from typing import Any

import torch
from torch import Tensor


class FakePool:
    """Earlier fake batches, one of which replaces the new one half of the time.

    Parameters
    ----------
    size : int
        Number of batches; with 0 the new batch is always used.
    seed : int
        Seed of the choice.

    Examples
    --------
    >>> import torch
    >>> pool = FakePool(size=2, seed=0)
    >>> pool.exchange(torch.ones(3, 2)).shape
    torch.Size([3, 2])
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.batches: list[Tensor] = []
        self._random = random.Random(seed)

    def exchange(self, fake: Tensor) -> Tensor:
        """Add `fake` to the pool and return the batch to train the discriminator on."""
        if len(self.batches) < self.size:
            self.batches.append(fake)
            return fake
        if self.size == 0 or self._random.random() < 0.5:
            return fake
        place = self._random.randrange(self.size)
        old, self.batches[place] = self.batches[place], fake
        return old

    def state_dict(self) -> dict[str, Any]:
        """Return everything that further exchanges depend on."""
        return {"batches": self.batches, "random": self._random.getstate()}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Resume from a `state_dict`, with batches on `device`."""
        self.batches = [batch.to(device) for batch in state["batches"]]
        self._random.setstate(state["random"])
