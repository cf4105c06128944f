"""Muon, an optimiser for the matrices between hidden layers.

The update of a matrix is its momentum with all singular values set to about one (Jordan et al.,
2024, "Muon: an optimizer for hidden layers in neural networks"). torch.optim.Muon updates matrices
one by one and in bfloat16, which is slow on most CPUs. This one updates all matrices of a shape
together, in their own precision.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic polynomial by Jordan et al., chosen for fast convergence."""

SMALLEST_NORM = 1e-12


class Muon(torch.optim.Optimizer):
    """Optimiser of stacks of matrices by orthogonalised momentum.

    Parameters
    ----------
    stacks : iterable of Tensor
        Stacks of matrices, `(count, rows, columns)`.
    lr : float
        Learning rate.

    Examples
    --------
    >>> import torch
    >>> weights = torch.zeros(1, 4, 4)
    >>> weights.grad = torch.diag(torch.tensor([1.0, 0.5, 0.2, 0.1]))[None]
    >>> _ = Muon([weights], lr=1.0).step()
    >>> bool((weights[0].diagonal().abs() > 0.6).all())
    True
    """

    def __init__(self, stacks: Iterable[Tensor], lr: float) -> None:
        super().__init__(stacks, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all matrices from their gradients."""
        for group in self.param_groups:
            for weights in group["params"]:
                momentum = self.state[weights].setdefault("momentum", torch.zeros_like(weights))
                momentum.lerp_(weights.grad, 1 - MOMENTUM)
                # Nesterov momentum: the momentum after one more step with this gradient.
                direction = orthogonalised(torch.lerp(weights.grad, momentum, MOMENTUM))
                rows, columns = weights.shape[-2:]
                weights.add_(direction, alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)


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
