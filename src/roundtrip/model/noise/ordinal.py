"""Ordered categories: cumulative probabilities of a logistic mixture between fixed thresholds."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from roundtrip.model.columns import Levels
from roundtrip.model.noise.base import ObservationModel, gumbel_argmax
from roundtrip.model.noise.gaussian import inverse_softplus

COMPONENTS = 3
"""Logistic distributions per feature."""

SMALLEST_SCALE = 0.02
SMALLEST_FREQUENCY = 1e-4
"""Of a level, in the thresholds: between equal thresholds a level would be impossible."""

BEYOND = 1e4
"""Stands for an infinite threshold: far enough that the logistic function is 0 or 1 there."""

FIRST_LOCATIONS = (-0.5, 0.0, 0.5)


class OrdinalNoise(ObservationModel):
    """p(x_j <= l | z) = Σ_k π_jk(z) σ((c_jl - μ_jk(z)) / s_jk(z)) for levels l in their order.

    σ is the logistic function. The thresholds c are such that one standard logistic distribution
    gives the frequencies of the training rows. Levels that are not known have the probability r_j.

    Parameters
    ----------
    levels : sequence of Levels
        The levels of each feature.

    Examples
    --------
    >>> import torch
    >>> size = Levels(3, ordered=True, reserved=0.0, frequencies=(0.2, 0.5, 0.3))
    >>> noise = OrdinalNoise([size])
    >>> p = noise.log_prob(torch.zeros(1, 9), torch.tensor([[0.0], [1.0], [2.0]])).exp()
    >>> round(float(p.sum()), 5)
    1.0
    """

    thresholds: Tensor
    counts: Tensor
    log_known: Tensor
    log_reserved: Tensor
    first_locations: Tensor

    def __init__(self, levels: Sequence[Levels]) -> None:
        super().__init__()
        self.features = len(levels)
        self.levels = list(levels)
        self.n_outputs = 3 * COMPONENTS * self.features
        self.sizes = [each.count for each in levels]
        thresholds = torch.full((self.features, max(self.sizes) + 1), BEYOND, dtype=torch.float64)
        for row, each in zip(thresholds, levels, strict=True):
            share = torch.tensor(each.frequencies, dtype=torch.float64) + SMALLEST_FREQUENCY
            row[0] = -BEYOND
            row[1 : each.count] = torch.logit(share.cumsum(0)[:-1] / share.sum())
        self.register_buffer("thresholds", thresholds, persistent=False)
        counts = torch.tensor(self.sizes, dtype=torch.int64)
        self.register_buffer("counts", counts, persistent=False)
        reserved = torch.tensor([each.reserved for each in levels], dtype=torch.float64)
        self.register_buffer("log_known", torch.log1p(-reserved), persistent=False)
        self.register_buffer("log_reserved", reserved.log(), persistent=False)
        self.register_buffer("first_locations", torch.tensor(FIRST_LOCATIONS), persistent=False)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z); 0 for missing cells, which are NaN."""
        return self.log_prob_of_terms(outputs, self.row_terms(x))

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the thresholds below and above each level, and log p where G does not give it."""
        unknown = x >= self.counts
        level = torch.minimum(x.nan_to_num(nan=0.0).long(), self.counts - 1)
        feature = torch.arange(self.features, device=x.device).expand_as(level)
        fixed = torch.where(unknown, self.log_reserved, torch.nan)
        return (
            self.thresholds[feature, level],
            self.thresholds[feature, level + 1],
            fixed.masked_fill(x.isnan(), 0.0),
        )

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), `(..., features)`, in the precision of `outputs`."""
        gap = terms[1] - terms[0]  # before rounding: neighbours may be close to each other
        low, high, gap, fixed = (term.to(outputs.dtype) for term in (*terms[:2], gap, terms[2]))
        log_share, location, scale = self._split(outputs)
        upper = (high[..., None] - location) / scale
        lower = (low[..., None] - location) / scale
        # σ(b) - σ(a) = σ(b) σ(-a) (1 - e^(a-b)), which is precise for all b > a.
        log_between = (
            logsigmoid(upper) + logsigmoid(-lower) + _log_one_minus_exp(gap[..., None] / scale)
        )
        result = torch.logsumexp(log_share + log_between, dim=-1)
        result = result + self.log_known.to(outputs.dtype)
        return torch.where(fixed.isnan(), result, fixed)

    def mean(self, outputs: Tensor) -> Tensor:
        """Return the median level of each feature: levels have no mean."""
        cumulative = self._cumulative(outputs)
        return (cumulative < 0.5).sum(dim=-1).clamp_max(self.counts - 1).to(outputs.dtype)

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw a known level of each feature, `(rows, features)`."""
        log_share, location, scale = self._split(outputs)
        which = gumbel_argmax(log_share, rng)[..., None]
        level = torch.rand(which.shape, generator=rng, dtype=torch.float64).to(outputs.device)
        logistic = torch.logit(level, eps=1e-12).to(location)
        drawn = location.gather(-1, which) + scale.gather(-1, which) * logistic
        inner = self.thresholds[:, 1:].to(drawn)
        return (drawn > inner).sum(dim=-1).clamp_max(self.counts - 1).to(outputs.dtype)

    def log_probabilities(self, outputs: Tensor) -> list[Tensor]:
        """Return log p(x_j = l | z) of all known levels of each feature, `(..., levels)` each."""
        found = []
        for place, count in enumerate(self.sizes):
            x = torch.arange(count, device=outputs.device, dtype=outputs.dtype)
            rows = x[:, None].expand(-1, self.features)
            found.append(self.log_prob(outputs[..., None, :], rows)[..., place])
        return found

    def cdf(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return p(x_j <= level | z), `(..., features)`; unknown levels come after all others."""
        cumulative = self._cumulative(outputs) * self.log_known.exp().to(outputs)[:, None]
        cumulative = torch.cat([torch.zeros_like(cumulative[..., :1]), cumulative], dim=-1)
        place = torch.minimum(x.clamp_min(-1).floor().long(), self.counts - 1) + 1
        shape = torch.broadcast_shapes(cumulative.shape[:-1], place.shape)
        below = cumulative.expand(*shape, -1).gather(-1, place.expand(shape)[..., None])[..., 0]
        return torch.where(x >= self.counts, 1.0, below)

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return the distribution of one feature, and its outputs."""
        size = 3 * COMPONENTS
        one = OrdinalNoise([self.levels[place]]).to(self.counts.device)
        return one, list(range(size * place, size * (place + 1)))

    def _cumulative(self, outputs: Tensor) -> Tensor:
        """Return p(x_j <= l | z) for all levels, `(..., features, levels)`."""
        log_share, location, scale = self._split(outputs)
        inner = self.thresholds[:, 1:].to(outputs.dtype)[..., None]
        below = torch.sigmoid((inner - location[..., None, :]) / scale[..., None, :])
        return (log_share.exp()[..., None, :] * below).sum(-1)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return log shares, locations and scales, `(..., features, COMPONENTS)` each."""
        parts = outputs.unflatten(-1, (self.features, 3 * COMPONENTS))
        logits, location, raw = parts.split(COMPONENTS, dim=-1)
        scale = softplus(raw + inverse_softplus(1.0)) + SMALLEST_SCALE
        return logits.log_softmax(dim=-1), location + self.first_locations.to(location), scale


def _log_one_minus_exp(distance: Tensor) -> Tensor:
    """Return log(1 - e^-distance) for positive distances."""
    distance = distance.clamp_min(1e-12)
    near = distance < math.log(2)
    # Each branch where it is precise; the other one gets a harmless argument.
    return torch.where(
        near,
        torch.log(-torch.expm1(-torch.where(near, distance, 1.0))),
        torch.log1p(-torch.exp(-torch.where(near, 1.0, distance))),
    )
