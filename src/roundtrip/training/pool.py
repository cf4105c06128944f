"""A pool of earlier fakes, so that discriminators do not forget what G and H used to make."""

import random
from typing import Any

import torch
from torch import Tensor


class FakePool:
    """Holds some earlier fake batches; half of the time it trades an old one for the new one.

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
        """Offer `fake` to the pool and get the batch the discriminator should see."""
        if len(self.batches) < self.size:
            self.batches.append(fake)
            return fake
        if self.size == 0 or self._random.random() < 0.5:
            return fake
        place = self._random.randrange(self.size)
        old, self.batches[place] = self.batches[place], fake
        return old

    def state_dict(self) -> dict[str, Any]:
        """All that further exchanges depend on."""
        return {"batches": self.batches, "random": self._random.getstate()}

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Go on from a `state_dict`, with batches on `device`."""
        self.batches = [batch.to(device) for batch in state["batches"]]
        self._random.setstate(state["random"])
