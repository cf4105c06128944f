"""Noise of mixed and incomplete rows: a factor of its own kind for each feature.

Given z the features are independent: p(x | z) = Π_j p_j(x_j | z). So every feature can have a
distribution of its own kind, and a cell that was not observed is a factor left out.
"""

import math

import torch
from torch import Tensor

from roundtrip.model.columns import Columns
from roundtrip.model.inputs import LEVEL_HEIGHT
from roundtrip.model.noise.base import LinearOutputs, ObservationModel
from roundtrip.model.noise.categorical import CategoricalNoise
from roundtrip.model.noise.ordinal import COMPONENTS, OrdinalNoise

LOGISTIC_SD = math.pi / math.sqrt(3)
"""Standard deviation of the logistic distribution; normal scores of levels have about 1."""


class MixedNoise(ObservationModel):
    """p(x | z) of numbers, categories and ordered categories, whose missing cells are NaN.

    The outputs of G are those of the numbers, then the logits of categories, then what describes
    ordered ones.

    Parameters
    ----------
    columns : Columns
        Kinds of the features.
    numbers : ObservationModel or None
        Noise of the numbers; None if there are none.

    Examples
    --------
    >>> import torch
    >>> from roundtrip.model.columns import Levels
    >>> from roundtrip.model.noise import ConstantGaussian
    >>> colour = Levels(2, ordered=False, reserved=0.0, frequencies=(0.5, 0.5))
    >>> noise = MixedNoise(Columns((colour, None), (False, True)), ConstantGaussian(1, sigma=1.0))
    >>> noise.log_prob(torch.zeros(1, 3), torch.tensor([[1.0, torch.nan]])).tolist()
    [[-0.6931471824645996, 0.0]]
    """

    order: Tensor

    def __init__(self, columns: Columns, numbers: ObservationModel | None) -> None:
        super().__init__()
        self.columns = columns
        self.features = len(columns.levels)
        self.numbers = numbers
        self.categories = (
            CategoricalNoise(columns.levels_of(columns.categories)) if columns.categories else None
        )
        self.ordered = OrdinalNoise(columns.levels_of(columns.ordered)) if columns.ordered else None
        places = (columns.numbers, columns.categories, columns.ordered)
        models = (self.numbers, self.categories, self.ordered)
        self._places = [part for part, model in zip(places, models, strict=True) if model]
        self.n_outputs = sum(self._sizes)
        # Of one row: how many terms a kind has is its own business.
        self._n_terms = [len(each.row_terms(torch.zeros(1, each.features))) for each in self.kinds]
        order = torch.tensor([place for part in self._places for place in part]).argsort()
        self.register_buffer("order", order, persistent=False)

    @property
    def kinds(self) -> list[ObservationModel]:
        """The observation models of the kinds that occur."""
        return [each for each in (self.numbers, self.categories, self.ordered) if each is not None]

    @property
    def _sizes(self) -> list[int]:
        return [each.n_outputs for each in self.kinds]

    @property
    def calibrations(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        """Settings of the noise of numbers."""
        return () if self.numbers is None else self.numbers.calibrations

    def calibrate(self, setting: tuple[float, ...]) -> None:
        """Make the density of numbers wider."""
        if self.numbers is not None:
            self.numbers.calibrate(setting)

    def start(self, data: Tensor, width: float) -> None:
        """Set the initial state of the numbers; missing cells get the values of other rows."""
        if self.numbers is not None:
            columns = data[:, self.columns.numbers].unbind(dim=1)
            self.numbers.start(torch.stack([_completed(each) for each in columns], dim=1), width)

    def outside_outputs(self) -> Tensor | None:
        """Return those of the numbers; levels have the frequencies of the table of fit."""
        like = self.order.new_zeros(self.n_outputs, dtype=torch.float32)
        if self.numbers is None:
            return like
        numbers = self.numbers.outside_outputs()
        return None if numbers is None else torch.cat([numbers, like[len(numbers) :]])

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z), 0 for missing cells; differentiable in `outputs`."""
        parts = [model.log_prob(part, values) for model, part, values in self._by_kind(outputs, x)]
        return self._joined(parts).masked_fill(x.isnan(), 0.0)

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the terms of all kinds, and which cells are missing."""
        x = x.double()
        terms = [model.row_terms(values) for model, _, values in self._by_kind(None, x)]
        return (x.isnan(), *(term for part in terms for term in part))

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), `(..., features)` float64, 0 for missing cells."""
        missing, *rest = terms
        parts = []
        outputs_of = outputs.split(self._sizes, dim=-1)
        for model, part, count in zip(self.kinds, outputs_of, self._n_terms, strict=True):
            parts.append(model.log_prob_of_terms(part, tuple(rest[:count])).double())
            rest = rest[count:]
        return self._joined(parts).masked_fill(missing, 0.0)

    def mean(self, outputs: Tensor) -> Tensor:
        """Return means of numbers, the likeliest levels of categories, medians of ordered ones."""
        parts = outputs.split(self._sizes, dim=-1)
        return self._joined([m.mean(part) for m, part in zip(self.kinds, parts, strict=True)])

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw all features."""
        parts = outputs.split(self._sizes, dim=-1)
        return self._joined(
            [m.sample(part, rng) for m, part in zip(self.kinds, parts, strict=True)]
        )

    def log_probabilities(self, outputs: Tensor) -> dict[int, Tensor]:
        """Return log p(x_j = l | z) of the known levels of each category, by its place."""
        found: dict[int, Tensor] = {}
        for model, part in zip(self.kinds, outputs.split(self._sizes, dim=-1), strict=True):
            if isinstance(model, CategoricalNoise):
                found |= zip(self.columns.categories, model.log_probabilities(part), strict=True)
            elif isinstance(model, OrdinalNoise):
                found |= zip(self.columns.ordered, model.log_probabilities(part), strict=True)
        return found

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return the distribution of one feature, and its outputs."""
        first = 0
        for model, places, size in zip(self.kinds, self._places, self._sizes, strict=True):
            if place in places:
                one, outputs = model.factor(places.index(place))
                return one, [first + output for output in outputs]
            first += size
        raise IndexError(f"there is no feature {place}")

    def linear_outputs(self) -> LinearOutputs:
        """Return how G starts if it is linear.

        Numbers come first among the inputs of H, then the levels of categories, then the scores of
        ordered ones.
        """
        numbers = len(self.columns.numbers)
        outputs, inputs = list(range(numbers)), list(range(numbers))
        slopes, is_location = [1.0] * numbers, [True] * numbers
        first_output = 0 if self.numbers is None else self.numbers.n_outputs
        first_input = numbers
        if self.categories is not None:
            levels = self.categories.n_outputs
            outputs += range(first_output, first_output + levels)
            inputs += range(first_input, first_input + levels)
            slopes += (self.categories.slopes / LEVEL_HEIGHT).tolist()
            is_location += [False] * levels
            first_output += levels
            first_input += levels
        if self.ordered is not None:
            for feature in range(self.ordered.features):
                first = first_output + (3 * feature + 1) * COMPONENTS
                outputs += range(first, first + COMPONENTS)
                inputs += [first_input + feature] * COMPONENTS
            slopes += [LOGISTIC_SD] * (COMPONENTS * self.ordered.features)
            is_location += [False] * (COMPONENTS * self.ordered.features)
        return LinearOutputs(outputs, inputs, slopes, is_location)

    def _by_kind(
        self, outputs: Tensor | None, x: Tensor
    ) -> list[tuple[ObservationModel, Tensor, Tensor]]:
        """Return each kind with its outputs and its features, numbers without NaN."""
        parts = [x] * len(self.kinds) if outputs is None else outputs.split(self._sizes, dim=-1)
        values = [x[..., places] for places in self._places]
        if self.numbers is not None:
            values[0] = values[0].nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
        return list(zip(self.kinds, parts, values, strict=True))

    def _joined(self, parts: list[Tensor]) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        dtype = parts[0].dtype
        return torch.cat([part.to(dtype) for part in parts], dim=-1)[..., self.order]


def _completed(column: Tensor) -> Tensor:
    """Return a column whose missing cells have evenly spread quantiles of the others."""
    missing = column.isnan()
    if not missing.any():
        return column
    if missing.all():  # the others are held out
        return torch.zeros_like(column)
    known = column[~missing].sort().values
    place = torch.linspace(0, len(known) - 1, int(missing.sum()), device=column.device)
    column = column.clone()
    column[missing] = known[place.round().long()]
    return column
