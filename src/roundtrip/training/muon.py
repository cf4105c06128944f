"""Muon, an optimiser for the matrices between hidden layers.

The update of a matrix is its momentum with all singular values set to about one (Jordan et al.,
2024, "Muon: an optimizer for hidden layers in neural networks"). torch.optim.Muon updates matrices
one by one and in bfloat16, which is slow on most CPUs. This one updates all matrices of a shape
together, in their own precision.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic polynomial by Jordan et al., chosen for fast convergence."""

SMALLEST_NORM = 1e-12


class Muon:
    """Optimiser of stacks of matrices by orthogonalised momentum.

    Parameters
    ----------
    stacks : iterable of Tensor
        Stacks of matrices, `(count, rows, columns)`, with their gradients in `grad`.
    lr : float
        Learning rate, which may be changed between steps.

    Examples
    --------
    >>> import torch
    >>> weights = torch.zeros(1, 4, 4)
    >>> weights.grad = torch.diag(torch.tensor([1.0, 0.5, 0.2, 0.1]))[None]
    >>> Muon([weights], lr=1.0).step()
    >>> bool((weights[0].diagonal().abs() > 0.6).all())
    True
    """

    def __init__(self, stacks: Iterable[Tensor], lr: float) -> None:
        self.stacks = list(stacks)
        self.lr = lr
        self._momenta = [torch.zeros_like(weights) for weights in self.stacks]

    @torch.no_grad()
    def step(self) -> None:
        """Update all matrices from their gradients."""
        for weights, momentum in zip(self.stacks, self._momenta, strict=True):
            gradient = weights.grad
            assert gradient is not None
            momentum.lerp_(gradient, 1 - MOMENTUM)
            # Nesterov momentum: the momentum after one more step with this gradient.
            direction = orthogonalised(torch.lerp(gradient, momentum, MOMENTUM))
            rows, columns = weights.shape[-2:]
            weights.add_(direction, alpha=-self.lr * max(1.0, rows / columns) ** 0.5)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that further steps depend on but the learning rate."""
        return {"momenta": self._momenta}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""
        for own, kept in zip(self._momenta, state["momenta"], strict=True):
            own.copy_(kept)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Return about U Vᵀ of each matrix U S Vᵀ; `(count, rows, columns)` → the same shape.

    The Newton-Schulz iteration brings singular values above 1 % of the norm to between 0.5 and 1.3.
    Smaller ones grow about 300 times.
    """
    if matrices.shape[-2] > matrices.shape[-1]:
        return orthogonalised(matrices.mT).mT
    a, b, c = COEFFICIENTS
    # Smaller matrices count as zero, because their squares would underflow.
    X = matrices / matrices.norm(dim=(-2, -1), keepdim=True).clamp_min(SMALLEST_NORM)
    for _ in range(ITERATIONS):
        square = X @ X.mT
        polynomial = torch.baddbmm(square, square, square, beta=b, alpha=c)
        X = torch.baddbmm(X, polynomial, X, beta=a)
    return X
