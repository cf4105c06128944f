"""`Rows`: a tensor of features and a tensor of context."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """Rows in scaled units; only networks join features and context into one vector.

    Attributes
    ----------
    x : Tensor
        `(rows, features)`.
    context : Tensor
        `(rows, context_dim)`; `context_dim` is 0 without a context.

    Examples
    --------
    >>> rows = Rows(torch.zeros(3, 2), torch.ones(3, 1))
    >>> len(rows), rows[torch.tensor([0, 2])].x.shape
    (3, torch.Size([2, 2]))
    """

    x: Tensor
    context: Tensor

    @classmethod
    def without_context(cls, x: Tensor) -> "Rows":
        """Return rows with features only."""
        return cls(x, x.new_empty(len(x), 0))

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: Tensor | slice) -> "Rows":
        """Return some of the rows, selected by index, mask or slice."""
        return Rows(self.x[rows], self.context[rows])

    @property
    def features(self) -> int:
        """Number of columns of `x`."""
        return self.x.shape[1]

    @property
    def context_dim(self) -> int:
        """Number of columns of `context`."""
        return self.context.shape[1]

    @property
    def device(self) -> torch.device:
        """Device of the tensors."""
        return self.x.device

    def to(self, target: torch.device | torch.dtype) -> "Rows":
        """Return the rows on another device or in another precision."""
        return Rows(self.x.to(target), self.context.to(target))

    def given(self, context: Tensor) -> "Rows":
        """Return the same features, all with one context of shape `(context_dim,)`."""
        return Rows(self.x, context.to(self.x).expand(len(self), -1))

    def split(self, size: int) -> Iterator["Rows"]:
        """Yield blocks of at most `size` rows."""
        for x, context in zip(self.x.split(size), self.context.split(size), strict=True):
            yield Rows(x, context)
