"""A pool of earlier fakes, so that discriminators do not forget what G and H used to make."""

import torch
from torch import Tensor


class FakePool:
    """Keeps the last fake batches; half of the time it hands out an old one for the new one.

    >>> import torch
    >>> pool = FakePool(size=2, generator=torch.Generator().manual_seed(0))
    >>> pool.exchange(torch.ones(3, 2)).shape
    torch.Size([3, 2])
    """

    def __init__(self, size: int, generator: torch.Generator) -> None:
        self.size = size
        self.batches: list[Tensor] = []
        self._generator = generator

    def exchange(self, fake: Tensor) -> Tensor:
        """Put `fake` into the pool and get the batch the discriminator should see."""
        if len(self.batches) < self.size:
            self.batches.append(fake)
            return fake
        if self.size == 0 or self._uniform() < 0.5:
            return fake
        place = int(self._uniform() * self.size)
        old, self.batches[place] = self.batches[place], fake
        return old

    def _uniform(self) -> float:
        return torch.rand((), generator=self._generator, device=self._generator.device).item()
