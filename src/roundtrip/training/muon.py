"""Muon: steps of the same size in all directions, for the matrices between hidden layers.

The update of a matrix is its momentum with all singular values set to about one. It was proposed by
Jordan et al. (2024, "Muon: an optimizer for hidden layers in neural networks"). torch's own goes
through the matrices one by one and in bfloat16, which few CPUs are fast at; here all of a shape are
updated together, in the precision they have.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic polynomial by Jordan et al., which brings singular values near one fastest."""

SMALLEST_NORM = 1e-12


class Muon(torch.optim.Optimizer):
    """Updates stacks of matrices, `(count, rows, columns)`, by orthogonalised momentum.

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
        """One update from the gradients."""
        for group in self.param_groups:
            for weights in group["params"]:
                momentum = self.state[weights].setdefault("momentum", torch.zeros_like(weights))
                momentum.lerp_(weights.grad, 1 - MOMENTUM)
                # Nesterov's: what the momentum will be if the gradient stays.
                direction = orthogonalised(torch.lerp(weights.grad, momentum, MOMENTUM))
                rows, columns = weights.shape[-2:]
                weights.add_(direction, alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)


def orthogonalised(matrices: Tensor) -> Tensor:
    """U V' of each matrix U S V', roughly; `(count, rows, columns)` → the same.

    Newton and Schulz's iteration: singular values from 1 % of the norm on become 0.5 to 1.3,
    smaller ones grow about three hundredfold.
    """
    if matrices.shape[-2] > matrices.shape[-1]:
        return orthogonalised(matrices.mT).mT
    a, b, c = COEFFICIENTS
    # Below, squares would underflow: so small a matrix counts as zero.
    X = matrices / matrices.norm(dim=(-2, -1), keepdim=True).clamp_min(SMALLEST_NORM)
    for _ in range(ITERATIONS):
        square = X @ X.mT
        polynomial = torch.baddbmm(square, square, square, beta=b, alpha=c)
        X = torch.baddbmm(X, polynomial, X, beta=a)
    return X
