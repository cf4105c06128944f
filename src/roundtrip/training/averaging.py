"""A running average of a model's weights, which varies less than the weights of single steps."""

import copy

import torch
from torch import Tensor

from roundtrip.model.core import RoundtripModel


class AveragedModel:
    """Exponential moving average of the weights of a model.

    Parameters
    ----------
    model : RoundtripModel
        The model in training.
    decay : float
        Decay per step. With 0 the average is the model itself.

    Attributes
    ----------
    average : RoundtripModel
        Copy of `model` with averaged weights.

    Examples
    --------
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
        # Parameters that are not trained, such as the paper's sigma, are set on the average itself.
        pairs = [
            (average, weight)
            for average, weight in zip(self.average.parameters(), model.parameters(), strict=True)
            if weight.requires_grad
        ]
        self._averages: list[Tensor] = [average for average, _ in pairs]
        self._weights: list[Tensor] = [weight for _, weight in pairs]

    @torch.no_grad()
    def update(self) -> None:
        """Include the model's weights after a step."""
        self.steps += 1
        if self.average is self.model:
            return
        # A smaller decay at first, because early weights are far from the final ones.
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self._averages, self._weights, 1 - decay)
        for kept, current in zip(self.average.buffers(), self.model.buffers(), strict=True):
            kept.copy_(current)  # the statistics of batch norm
