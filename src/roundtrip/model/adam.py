"""Adam, for the weights of networks and for codes.

The first optimiser of torch.optim in a process imports torch's compiler, which takes seconds: as
long as a fit of a small table. Parameters lie in a few large tensors here, for which plain tensor
operations are as fast.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class Adam:
    """Adam (Kingma and Ba, 2015) for tensors whose gradients are in `grad`.

    Parameters
    ----------
    tensors : iterable of Tensor
        Tensors to update in place.
    lr : float
        Learning rate, which may be changed between steps.
    betas : tuple of float, default=(0.9, 0.999)
        Decay of the running means of the gradient and of its square.
    eps : float, default=1e-8
        Added to the root of the mean square.

    Examples
    --------
    >>> import torch
    >>> weights = torch.zeros(2)
    >>> weights.grad = torch.tensor([1.0, -5.0])
    >>> Adam([weights], lr=0.1).step()
    >>> weights
    tensor([-0.1000,  0.1000])
    """

    def __init__(
        self,
        tensors: Iterable[Tensor],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.tensors = list(tensors)
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self._steps = 0
        self._means = [torch.zeros_like(tensor) for tensor in self.tensors]
        self._squares = [torch.zeros_like(tensor) for tensor in self.tensors]

    @torch.no_grad()
    def step(self) -> None:
        """Update all tensors from their gradients."""
        self._steps += 1
        first, second = self.betas
        rate = self.lr / (1 - first**self._steps)
        root = math.sqrt(1 - second**self._steps)
        for tensor, mean, square in zip(self.tensors, self._means, self._squares, strict=True):
            gradient = tensor.grad
            assert gradient is not None
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            tensor.addcdiv_(mean, square.sqrt().div_(root).add_(self.eps), value=-rate)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that further steps depend on but the learning rate."""
        return {"steps": self._steps, "means": self._means, "squares": self._squares}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""
        self._steps = state["steps"]
        for own, kept in (
            *zip(self._means, state["means"], strict=True),
            *zip(self._squares, state["squares"], strict=True),
        ):
            own.copy_(kept)
