"""`RowInputs`: rows with categories and missing cells as inputs of the encoder."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad
from torch.nn.utils.rnn import pad_sequence

from roundtrip.model.columns import Columns

LEVEL_HEIGHT = 2.0
"""Input of the level that a row has; other levels are 0. A level with half of the rows then has
unit variance, as standardised numbers have."""

WIDTH_UNIT = 4
"""Inputs are filled up with zeros to a multiple of it: products of matrices of odd width may round
a row differently at another position in a block."""

KEPT_PATTERNS = 512
"""Training rows whose missing cells are kept."""

SMALLEST_QUANTILE = 1e-3
"""Levels beyond it have the same score as at it."""


class RowInputs(nn.Module):
    """Numbers, an input per level of a category, scores of ordered ones, masks of missing cells.

    The inputs of a missing cell are 0. For features that were incomplete in training, a further
    input is 1 where the cell is missing, so that the encoder can tell it from an average value.

    Parameters
    ----------
    columns : Columns
        Kinds of the features.

    Attributes
    ----------
    width : int
        Number of inputs, zeros at the end included.
    described : int
        Number of inputs that describe values; the others, the masks, follow them.

    Examples
    --------
    >>> import torch
    >>> from roundtrip.model.columns import Columns, Levels
    >>> colour = Levels(2, ordered=False, reserved=0.0, frequencies=(0.5, 0.5))
    >>> inputs = RowInputs(Columns((None, colour), (True, False)))
    >>> inputs(torch.tensor([[1.5, 0.0], [torch.nan, 1.0]])).tolist()
    [[1.5, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]]
    """

    numbers: Tensor
    ordered: Tensor
    incomplete: Tensor
    scores: Tensor
    patterns: Tensor

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self._categories = columns.categories
        self._indicators = columns.indicators
        self._counts = [each.count for each in columns.levels_of(columns.categories)]
        self.described = len(columns.numbers) + sum(self._counts) + len(columns.ordered)
        incomplete = [place for place, each in enumerate(columns.incomplete) if each]
        inputs = self.described + len(incomplete)
        self._spare = -inputs % WIDTH_UNIT
        self.width = inputs + self._spare
        for name, places in (
            ("numbers", columns.numbers),
            ("ordered", columns.ordered),
            ("incomplete", incomplete),
        ):
            self.register_buffer(name, torch.tensor(places).long(), persistent=False)
        scores = [normal_scores(each.frequencies) for each in columns.levels_of(columns.ordered)]
        # Behind the levels a zero, for unknown levels and missing cells.
        table = pad_sequence([pad(each, (0, 1)) for each in scores], True) if scores else None
        self.register_buffer("scores", table, persistent=False)
        patterns = torch.zeros(KEPT_PATTERNS, len(columns.levels), dtype=torch.bool)
        self.register_buffer("patterns", patterns)

    def learn_patterns(self, x: Tensor) -> None:
        """Keep which cells of some rows are missing; rows come in random order."""
        self.patterns.copy_(x.isnan()[torch.arange(KEPT_PATTERNS) % len(x)])

    def as_observed(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return rows with cells missing as in training rows; `rng` is on the CPU."""
        if not len(self.incomplete):
            return x
        which = torch.randint(KEPT_PATTERNS, (len(x),), generator=rng).to(x.device)
        missing = self.patterns[which]
        for feature, indicator in self._indicators:  # which the row was drawn with
            missing[:, feature] = x[:, indicator] == 1
        return x.masked_fill(missing, torch.nan)

    def known_pattern(self, x: Tensor) -> Tensor:
        """Return which rows miss no other cells than training rows do, `(rows,)`."""
        complete = torch.ones(x.shape[1], dtype=torch.bool, device=x.device)
        complete[self.incomplete] = False
        return ~(x.isnan() & complete).any(dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(rows, features)` to `(rows, width)`."""
        parts = [x[..., self.numbers].nan_to_num(nan=0.0)]
        for place, count in zip(self._categories, self._counts, strict=True):
            # Unknown levels and missing cells are the last class, which is dropped.
            level = x[..., place].nan_to_num(nan=count).clamp(0, count).long()
            parts.append(LEVEL_HEIGHT * one_hot(level, count + 1)[..., :-1].to(x.dtype))
        if len(self.ordered):
            last = self.scores.shape[1] - 1
            level = x[..., self.ordered].nan_to_num(nan=last).clamp(0, last).long()
            feature = torch.arange(len(self.ordered), device=x.device).expand_as(level)
            parts.append(self.scores[feature, level].to(x.dtype))
        parts.append(x[..., self.incomplete].isnan().to(x.dtype))
        return pad(torch.cat(parts, dim=-1), (0, self._spare))


class FilledInputs(nn.Module):
    """Rows of numbers with typical values for missing cells, for an encoder of complete rows.

    Parameters
    ----------
    typical : Tensor
        Typical values, `(features,)`.

    Examples
    --------
    >>> import torch
    >>> FilledInputs(torch.tensor([5.0, 6.0]))(torch.tensor([[1.0, torch.nan]])).tolist()
    [[1.0, 6.0]]
    """

    typical: Tensor

    def __init__(self, typical: Tensor) -> None:
        super().__init__()
        self.register_buffer("typical", typical, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Fill `(rows, features)`."""
        return torch.where(x.isnan(), self.typical.to(x.dtype), x)

    def as_observed(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return the rows: those of training were complete."""
        return x

    def known_pattern(self, x: Tensor) -> Tensor:
        """Return which rows are complete, `(rows,)`."""
        return ~x.isnan().any(dim=1)


def normal_scores(frequencies: Sequence[float]) -> Tensor:
    """Return the normal quantile of the middle of each level of an ordered category.

    Examples
    --------
    >>> normal_scores([0.25, 0.5, 0.25]).round(decimals=2).tolist()
    [-1.149999976158142, 0.0, 1.149999976158142]
    """
    share = torch.tensor(frequencies, dtype=torch.float64)
    middle = share.cumsum(0) - share / 2
    return torch.special.ndtri(middle.clamp(SMALLEST_QUANTILE, 1 - SMALLEST_QUANTILE)).float()
