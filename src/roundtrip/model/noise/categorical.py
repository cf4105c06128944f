"""Categories: a softmax over the levels of each, whose logits G gives."""

from collections.abc import Sequence

import torch
from torch import Tensor

from roundtrip.model.columns import Levels
from roundtrip.model.noise.base import ObservationModel, gumbel_argmax

SMALLEST_FREQUENCY = 1e-6
"""Of a level before training; levels that the user listed need not occur."""

STEEPEST = 20.0
"""Largest slope of a logit at the start of training, so that rare levels have no extreme logits."""


class CategoricalNoise(ObservationModel):
    """p(x_j = l | z) = (1 - r_j) softmax_l(logits_j(z)), and r_j for levels that are not known.

    Parameters
    ----------
    levels : sequence of Levels
        The levels of each feature.

    Examples
    --------
    >>> import torch
    >>> colour = Levels(2, ordered=False, reserved=0.1, frequencies=(0.75, 0.25))
    >>> noise = CategoricalNoise([colour])
    >>> noise.log_prob(torch.zeros(1, 2), torch.tensor([[0.0], [1.0], [2.0]])).exp()
    tensor([[0.6750],
            [0.2250],
            [0.1000]])
    """

    first_logits: Tensor
    offsets: Tensor
    counts: Tensor
    log_known: Tensor
    log_reserved: Tensor

    def __init__(self, levels: Sequence[Levels]) -> None:
        super().__init__()
        self.features = len(levels)
        self.levels = list(levels)
        self.sizes = [each.count for each in levels]
        self.n_outputs = sum(self.sizes)
        frequencies = torch.tensor([f for each in levels for f in each.frequencies])
        logits = frequencies.clamp_min(SMALLEST_FREQUENCY).log()
        self.register_buffer("first_logits", logits, persistent=False)
        counts = torch.tensor(self.sizes, dtype=torch.int64)
        self.register_buffer("counts", counts, persistent=False)
        self.register_buffer("offsets", counts.cumsum(0) - counts, persistent=False)
        reserved = torch.tensor([each.reserved for each in levels], dtype=torch.float64)
        self.register_buffer("log_known", torch.log1p(-reserved), persistent=False)
        self.register_buffer("log_reserved", reserved.log(), persistent=False)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z); 0 for missing cells, which are NaN."""
        return self.log_prob_of_terms(outputs, self.row_terms(x))

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the output that belongs to the level of each cell, and log p where none does."""
        unknown = x >= self.counts
        level = torch.minimum(x.nan_to_num(nan=0.0).long(), self.counts - 1)
        fixed = torch.where(unknown, self.log_reserved, torch.nan)
        return self.offsets + level, fixed.masked_fill(x.isnan(), 0.0)

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), `(..., features)`, in the precision of `outputs`."""
        place, fixed = terms
        logits = outputs + self.first_logits
        total = torch.stack(
            [part.logsumexp(dim=-1) for part in logits.split(self.sizes, dim=-1)], dim=-1
        )
        shape = torch.broadcast_shapes(logits.shape[:-1], place.shape[:-1])
        chosen = logits.expand(*shape, -1).gather(-1, place.expand(*shape, -1))
        result = chosen - total + self.log_known.to(logits.dtype)
        return torch.where(fixed.isnan(), result, fixed.to(logits.dtype))

    def mean(self, outputs: Tensor) -> Tensor:
        """Return the most probable level of each feature: levels have no mean."""
        parts = (outputs + self.first_logits).split(self.sizes, dim=-1)
        return torch.stack([part.argmax(dim=-1) for part in parts], dim=-1).to(outputs.dtype)

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw a known level of each feature, `(rows, features)`."""
        parts = (outputs + self.first_logits).split(self.sizes, dim=-1)
        drawn = [gumbel_argmax(part, rng) for part in parts]
        return torch.stack(drawn, dim=-1).to(outputs.dtype)

    def log_probabilities(self, outputs: Tensor) -> list[Tensor]:
        """Return log p(x_j = l | z) of all known levels of each feature, `(..., levels)` each."""
        parts = (outputs + self.first_logits).split(self.sizes, dim=-1)
        return [
            part.log_softmax(dim=-1) + known
            for part, known in zip(parts, self.log_known.to(outputs.dtype), strict=True)
        ]

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return the softmax of one feature, and its logits."""
        first = sum(self.sizes[:place])
        one = CategoricalNoise([self.levels[place]]).to(self.counts.device)
        return one, list(range(first, first + self.sizes[place]))

    @property
    def slopes(self) -> Tensor:
        """How fast each logit grows with the share of its level: 1 / f at the frequency f."""
        return (-self.first_logits).exp().clamp_max(STEEPEST)
