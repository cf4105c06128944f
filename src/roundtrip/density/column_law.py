"""`ColumnLaw`: the distribution of one feature given the rest of each row, in scaled units.

Given z the features are independent, so that it is p(x_j | z) averaged over weighted draws of z
given the rest of the row.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.conditional_draws import resampled
from roundtrip.density.outside import error_of_average
from roundtrip.density.part_posterior import WeightedCodes
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise.limited import log_levels
from roundtrip.model.noise.truncated import bisected

MOST_OUTPUTS = 2**25
"""Outputs of G that are kept for further questions; more are computed anew for each."""

NUMBERS_AT_ONCE = 2**21
"""Limits the draws times points that are evaluated together, and so the memory."""

BISECTIONS, QUANTILE_POINTS = 44, 3

USUAL_REACH = 4.0
"""Quantiles mostly lie within this distance of the means given z, in scaled units."""


class ColumnLaw:
    """p(x_j | the rest of a row), one per row.

    Parameters
    ----------
    model : RoundtripModel
        The model.
    place : int
        Place of the feature j.
    codes : WeightedCodes
        Weighted draws of z given the rest of each row.
    """

    def __init__(self, model: RoundtripModel, place: int, codes: WeightedCodes) -> None:
        self.codes = codes
        self._model, self._place = model, place
        self._one, self._needed = model.noise.factor(place)
        self._outputs: Tensor | None = None

    def __len__(self) -> int:
        return len(self.codes.z)

    def __getitem__(self, rows: Tensor) -> "ColumnLaw":
        """Return the distributions of some of the rows."""
        return ColumnLaw(self._model, self._place, self.codes[rows])

    def mean(self) -> tuple[Tensor, Tensor]:
        """Return means and their standard errors, `(rows, 1)` each."""
        return self._average(lambda outputs, _: self._one.mean(outputs), self._nothing())

    def std(self) -> tuple[Tensor, Tensor]:
        """Return standard deviations and their standard errors, `(rows, 1)` each."""

        def around(outputs: Tensor, centre: Tensor) -> Tensor:
            apart = self._one.mean(outputs) - centre
            return self._one.variance(outputs) + apart.square()

        variance, error = self._average(around, self.mean()[0][:, None])
        std = variance.sqrt()
        return std, error / (2 * std)

    def cdf(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return p(x_j <= x | rest) at `(rows, points)`, and standard errors."""
        return self._average(
            lambda outputs, x: self._one.cdf(outputs[:, :, None], x[..., None])[..., 0], x[:, None]
        )

    def masses(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of bins between `(rows, bins + 1)` edges, and their errors."""

        def between(outputs: Tensor, x: Tensor) -> Tensor:
            return self._one.cdf(outputs[:, :, None], x[..., None])[..., 0].diff(dim=-1)

        return self._average(between, edges[:, None])

    def log_prob(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p(x_j = x | rest) at `(rows, points)`, and standard errors."""
        parts = []
        for rows, outputs in self._blocks(x.shape[1]):
            log_p = self._one.log_prob(outputs[:, :, None], x[rows, None, :, None].double())
            weights = self.codes.weights[rows]
            parts.append(_log_average(log_p[..., 0], weights, self.codes.drawn))
        return _joined(parts)

    def probabilities(self) -> tuple[Tensor, Tensor]:
        """Return the probabilities of the known levels, `(rows, levels)`, and standard errors."""
        return self._average(
            lambda outputs, _: log_levels(self._one, outputs).exp(), self._nothing()
        )

    def quantile(self, levels: Tensor) -> tuple[Tensor, Tensor]:
        """Return quantiles, `(rows, levels)`, and their standard errors."""
        parts = []
        for rows, outputs in self._blocks(QUANTILE_POINTS):
            means = self._one.mean(outputs)[..., 0]
            ends = torch.stack([means.amin(1) - USUAL_REACH, means.amax(1) + USUAL_REACH], dim=1)
            cdf = self._one.averaged_cdf(outputs, self.codes.weights[rows])
            parts.append(_quantiles(cdf, levels, ends))
        x = torch.cat(parts)
        return x, self.cdf(x)[1] / self.log_prob(x)[0].exp()

    def averaged_cdf(self, x: Tensor) -> Tensor:
        """Return p(x_j <= x | rest) at `(rows, points)`, quicker than `cdf`, without errors."""
        return torch.cat(
            [
                self._one.averaged_cdf(outputs, self.codes.weights[rows])(x[rows])
                for rows, outputs in self._blocks(QUANTILE_POINTS)
            ]
        )

    def sample(self, count: int, rng: torch.Generator) -> Tensor:
        """Draw values, `(rows, count)`."""
        parts = []
        for rows, outputs in self._blocks(1):
            weights = self.codes.weights[rows]
            chosen = torch.stack([resampled(each, count, rng) for each in weights])
            picked = outputs.gather(1, chosen[..., None].expand(-1, -1, outputs.shape[-1]))
            drawn = self._one.sample(picked.flatten(0, 1), rng)
            parts.append(drawn.view(chosen.shape).double())
        return torch.cat(parts)

    def _average(
        self, function: Callable[[Tensor, Tensor], Tensor], x: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return averages over z of a function of outputs and values, and standard errors."""
        parts = []
        for rows, outputs in self._blocks(x.shape[-1]):
            values = function(outputs, x[rows])
            weights = self.codes.weights[rows, :, None]
            mean = (weights * values).sum(1)
            error = error_of_average(weights[..., 0], values, drawn=self.codes.drawn)
            parts.append((mean, error))
        return _joined(parts)

    def _nothing(self) -> Tensor:
        return self.codes.weights.new_empty(len(self), 1, 1)

    def _blocks(self, points: int) -> Iterator[tuple[slice, Tensor]]:
        """Yield rows and what G says of the feature at their draws, `(rows, draws, outputs)`."""
        rows, draws = self.codes.weights.shape
        size = max(1, NUMBERS_AT_ONCE // (draws * max(points, 1) * len(self._needed)))
        keeps = rows * draws * len(self._needed) <= MOST_OUTPUTS
        if keeps and self._outputs is None:
            self._outputs = self._decoded(slice(None))
        for start in range(0, rows, size):
            block = slice(start, start + size)
            known = self._decoded(block) if self._outputs is None else self._outputs[block]
            yield block, known.double()

    @torch.no_grad()
    def _decoded(self, rows: slice) -> Tensor:
        z = self.codes.z[rows]
        needed = torch.tensor(self._needed, device=z.device)

        def of_block(block: Tensor) -> Tensor:
            return self._model.outputs_of(block)[:, needed]

        outputs = map_blocks(of_block, z.flatten(0, 1), EVALUATIONS_PER_CALL)
        return outputs.unflatten(0, z.shape[:2])


def _quantiles(cdf: Callable[[Tensor], Tensor], levels: Tensor, ends: Tensor) -> Tensor:
    """Return quantiles, `(rows, levels)`, which mostly lie between the `(rows, 2)` ends."""
    outside = cdf(ends)
    low, high = (end[:, None].expand(-1, len(levels)) for end in ends.unbind(1))
    low = torch.where(outside[:, :1] < levels, low, -math.inf)
    high = torch.where(outside[:, 1:] >= levels, high, math.inf)
    return bisected(lambda x: cdf(x) >= levels, low, high, BISECTIONS)


def _log_average(log_values: Tensor, weights: Tensor, drawn: int) -> tuple[Tensor, Tensor]:
    """Return the log of the average of exp(log_values), `(rows, codes, points)`, and its error."""
    log_mean = torch.logsumexp(log_values + weights.log()[..., None], dim=1)
    relative = (log_values - log_mean[:, None]).exp()
    return log_mean, error_of_average(weights, relative, drawn=drawn)


def _joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    values, errors = zip(*parts, strict=True)
    return torch.cat(values), torch.cat(errors)
