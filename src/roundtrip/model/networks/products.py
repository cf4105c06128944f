"""Linear layers whose matrix products run in oneDNN where that is quicker than torch's default.

torch takes the products of float32 layers to Intel's MKL, which uses half the vector width of AMD's
processors; oneDNN, which is part of torch, uses all of it. On such a machine large products take
half the time, on others the same. torch's compiler calls oneDNN by the same operator.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

FEWEST_ROWS, FEWEST_WEIGHTS = 32, 4_096
"""Of a product without a gradient. Smaller ones take no longer than a call of oneDNN."""

TRAINED_WIDTH = 128
"""Fewest inputs and outputs of a layer whose gradient is computed by oneDNN, too."""

_plain: ContextVar[bool] = ContextVar("plain products", default=False)


@contextmanager
def plain_products() -> Iterator[None]:
    """Use torch's own products, which can be differentiated in forward mode."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


class Linear(nn.Linear):
    """`torch.nn.Linear`, computed by oneDNN for large float32 products on a CPU.

    Examples
    --------
    >>> import torch
    >>> layer = Linear(64, 64)
    >>> x = torch.ones(32, 64)
    >>> with torch.no_grad():
    ...     bool(torch.allclose(layer(x), x @ layer.weight.T + layer.bias, atol=1e-5))
    True
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to rows."""
        if not self._suits_onednn(x):
            return linear(x, self.weight, self.bias)
        if not torch.is_grad_enabled():
            return _product(x, self.weight, self.bias)
        # Only training needs the derivatives in the weights, which are computed in any case.
        if not self.training or min(self.in_features, self.out_features) < TRAINED_WIDTH:
            return linear(x, self.weight, self.bias)
        product: Tensor = _DifferentiableProduct.apply(x, self.weight, self.bias)
        return product

    def _suits_onednn(self, x: Tensor) -> bool:
        return bool(
            x.dtype == self.weight.dtype == torch.float32
            and x.device.type == "cpu"
            and x.ndim == 2
            and len(x) >= FEWEST_ROWS
            and self.in_features * self.out_features >= FEWEST_WEIGHTS
            and torch.backends.mkldnn.is_available()
            and torch.backends.mkldnn.enabled
            and not _plain.get()
        )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


class _DifferentiableProduct(torch.autograd.Function):
    """x Wᵀ + b with the products of its derivatives in oneDNN, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradients[0]
        needs = ctx.needs_input_grad
        return (
            _product(gradient, weight.T, None) if needs[0] else None,
            _product(gradient.T, x.T, None) if needs[1] else None,
            gradient.sum(dim=0) if needs[2] else None,
        )
