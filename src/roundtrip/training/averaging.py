"""A running average of a model's weights: steadier than the weights of any one step."""

import copy

import torch
from torch import Tensor

from roundtrip.model.core import RoundtripModel


class AveragedModel:
    """Keeps `average`, a copy of `model` whose weights follow the model's with some delay.

    With `decay` 0 the average is the model itself.

    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), 1, sigma=1.0)
    >>> AveragedModel(model, decay=0.0).average is model
    True
    """

    def __init__(self, model: RoundtripModel, *, decay: float) -> None:
        self.model = model
        self.decay = decay
        self.steps = 0
        self.average = copy.deepcopy(model).requires_grad_(False) if decay > 0 else model
        # What is not trained, as the paper's sigma, is not the model's to say.
        pairs = [
            (average, weight)
            for average, weight in zip(self.average.parameters(), model.parameters(), strict=True)
            if weight.requires_grad
        ]
        self._averages: list[Tensor] = [average for average, _ in pairs]
        self._weights: list[Tensor] = [weight for _, weight in pairs]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the model's weights after a step."""
        self.steps += 1
        if self.average is self.model:
            return
        # Short memory at first: early weights are far from where training settles.
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self._averages, self._weights, 1 - decay)
        for kept, current in zip(self.average.buffers(), self.model.buffers(), strict=True):
            kept.copy_(current)  # what batch norm has seen
