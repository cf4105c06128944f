"""Endless batches of rows: drawn with replacement, as in the paper, or in shuffled passes."""

from typing import Any, Self

import torch
from torch import Tensor

from roundtrip.data import Rows

SAMPLING = ("replacement", "shuffle")


class Batches:
    """Endless iterator over batches of rows.

    Batches are always full: a table smaller than a batch repeats within it.

    Parameters
    ----------
    data : Rows
        The rows.
    batch_size : int
        Rows per batch.
    sampling : {"shuffle", "replacement"}
        "shuffle" visits every row once before any row a second time; "replacement" draws rows with
        replacement.
    rng : torch.Generator
        Source of all random numbers, on the device of `data`.
    jitter : Tensor, default=None
        Width of the uniform noise that is added to each feature, `(features,)`, or to each value of
        `data`, `(rows, features)`.

    Examples
    --------
    >>> import torch
    >>> rows = Rows.without_context(torch.arange(4.0)[:, None])
    >>> stream = Batches(rows, 2, sampling="shuffle", rng=torch.Generator().manual_seed(0))
    >>> sorted(torch.cat([next(stream).x, next(stream).x]).flatten().tolist())
    [0.0, 1.0, 2.0, 3.0]
    """

    def __init__(
        self,
        data: Rows,
        batch_size: int,
        *,
        sampling: str,
        rng: torch.Generator,
        jitter: Tensor | None = None,
    ) -> None:
        self.data = data
        self.batch_size = batch_size
        self.sampling = sampling
        self.jitter = jitter
        self._rng = rng
        self._waiting = torch.empty(0, dtype=torch.int64, device=data.device)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Rows:
        indices = self._indices()
        rows = self.data[indices]
        if self.jitter is None:
            return rows
        width = self.jitter if self.jitter.ndim == 1 else self.jitter[indices]
        return jittered(rows, width, self._rng)

    def _indices(self) -> Tensor:
        n, device = len(self.data), self.data.device
        if self.sampling == "replacement":
            return torch.randint(n, (self.batch_size,), generator=self._rng, device=device)
        while len(self._waiting) < self.batch_size:
            order = torch.randperm(n, generator=self._rng, device=device)
            self._waiting = torch.cat([self._waiting, order])
        indices, self._waiting = self._waiting.tensor_split([self.batch_size])
        return indices

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next batches depend on, except the data."""
        return {"waiting": self._waiting.clone(), "rng": self._rng.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""
        self._waiting = state["waiting"].to(self.data.device)
        self._rng.set_state(state["rng"])


def jittered(rows: Rows, width: Tensor, rng: torch.Generator) -> Rows:
    """Add uniform noise centred at zero to the features.

    Parameters
    ----------
    rows : Rows
        The rows.
    width : Tensor
        Width of the noise, `(features,)` or `(rows, features)`.
    rng : torch.Generator
        Source of the noise.

    Returns
    -------
    Rows
        The rows with noise.
    """
    x = rows.x
    level = torch.rand(x.shape, generator=rng, device=x.device, dtype=x.dtype)
    return Rows(x + (level - 0.5) * width, rows.context)
