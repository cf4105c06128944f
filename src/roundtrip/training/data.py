"""`FittingData`: the scaled rows for training and validation."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Rows, Schema
from roundtrip.data.kinds import CategoryColumn
from roundtrip.model.columns import Columns, Levels
from roundtrip.model.networks import ImageShape, Sizes
from roundtrip.training.batches import jittered
from roundtrip.training.validation import Validation

CONTINUOUS_FLOOR = 1e-3
"""Smallest width of the noise of a column, in units of its interquartile range."""

NARROWEST = 1e-30
"""Smallest range of a column in scaled units whose numbers are not lost in float32."""

HELD_OUT_PARTS = 5
"""A fold holds out a fifth of the rows, also if there are fewer folds."""

ENOUGH_ROWS = 2_000
"""From this number of rows on, a tenth of them judges well enough."""

ROUNDED_FLOOR = 0.05
"""Smallest width of the noise of a rounded column, in units of its rounding step."""

SPIKE_ROWS = 20
"""Rows per distinct value from which on the rounding step alone limits the width of the noise."""


@dataclass(frozen=True)
class FittingData:
    """Scaled rows for training and validation, and the rounding of their columns.

    Attributes
    ----------
    training, validation : Rows
        Rows in float64 on the device of training.
    resolution : Tensor
        Rounding step of each column in scaled units, 0 if it is not rounded; `(features,)`.
    jitter : bool
        Whether to dequantise: to spread rounded values over their rounding steps.
    log_det : float
        Log-determinant of the scaling, which converts log densities to the user's units.
    image_shape : tuple of int, default=None
        Height, width and channels of images.
    own_validation : bool, default=False
        Whether the user gave the validation rows. Otherwise they are rows of the table, which may
        be trained on in the end.
    widths_of : callable, default=None
        Widths over which rows `(rows, features)` are spread, `(features,)` or `(rows, features)`;
        None for `resolution`.
    columns : Columns or None, default=None
        Kinds of the features of mixed or incomplete rows; None for complete numbers.
    copies : Tensor or None, default=None
        Number of the group of copies of each row of `all_rows`, if there are copies.
    """

    training: Rows
    validation: Rows
    resolution: Tensor
    jitter: bool
    log_det: float
    image_shape: ImageShape | None = None
    own_validation: bool = False
    widths_of: Callable[[Tensor], Tensor] | None = None
    columns: Columns | None = None
    copies: Tensor | None = None

    def __post_init__(self) -> None:
        for rows in (self.training, self.validation):
            values = rows.x.float()
            if not (torch.isfinite(values) | values.isnan()).all():
                raise ValueError(
                    "the table spans a range too wide for float32; rescale its columns"
                )
        x = self.training.x
        low, high = x.nan_to_num(nan=math.inf).amin(0), x.nan_to_num(nan=-math.inf).amax(0)
        narrow = (high > low) & (high - low < NARROWEST)
        if narrow.any():
            raise ValueError(
                f"columns {narrow.nonzero()[:, 0].tolist()} span a range too narrow for float32; "
                "rescale them, or use scale='standard'"
            )

    @classmethod
    def of(
        cls,
        schema: Schema,
        rows: Rows,
        held_out: Rows | None,
        *,
        validation: Validation,
        dequantize: bool,
        rng: np.random.Generator,
        device: torch.device,
    ) -> Self:
        """Split rows into training and validation rows.

        Parameters
        ----------
        schema : Schema
            Scaling, rounding and image layout of the rows.
        rows : Rows
            Scaled rows.
        held_out : Rows or None
            Validation rows. If None, a random fraction of `rows` is held out.
        validation : Validation
            The fraction and the largest number of validation rows.
        dequantize : bool
            Whether to spread rounded values over their rounding steps.
        rng : numpy.random.Generator
            Source of the random order.
        device : torch.device
            Device of training.

        Returns
        -------
        FittingData
            The rows on `device`.
        """
        assert validation.rows != "auto"
        own_validation = held_out is not None
        copies: Tensor | None = None
        if held_out is None:
            order = torch.from_numpy(rng.permutation(len(rows)))
            count = min(max(1, round(validation.fraction * len(rows))), len(rows) - 1)
            groups = schema.copies(rows.x)
            if groups is not None:
                # Copies follow each other, and the end of a group ends the held-out rows.
                first = torch.from_numpy(_first_places(groups[order]))
                order = order[torch.argsort(first, stable=True)]
                copies = torch.from_numpy(groups)[order]
                ends = 1 + torch.nonzero(copies[1:] != copies[:-1]).flatten()
                count = int(ends[(ends - count).abs().argmin()])
            rows, held_out = rows[order[count:]], rows[order[:count]]
            if copies is not None:
                copies = torch.cat([copies[:count][: validation.rows], copies[count:]])
        else:
            held_out = held_out[torch.from_numpy(rng.permutation(len(held_out)))]
            rows = rows[torch.from_numpy(rng.permutation(len(rows)))]
        return cls(
            rows.to(device),
            held_out[: validation.rows].to(device),
            resolution=torch.from_numpy(schema.scaled_resolution).to(device),
            jitter=dequantize and bool((schema.resolution > 0).any()),
            log_det=float(schema.log_dets(rows.x).mean()),
            image_shape=None if schema.images is None else schema.images.shape,
            own_validation=own_validation,
            widths_of=schema.spread_widths,
            columns=columns_of(schema),
            copies=None if copies is None else copies.to(device),
        )

    def folds(self, count: int) -> "list[FittingData]":
        """Return `count` splits of all rows, whose validation rows do not overlap.

        Parameters
        ----------
        count : int
            Number of folds. The validation rows of each are a fifth of all rows, or less if there
            are more folds. With one fold, tables of at least 2,000 rows stay split as they are.

        Returns
        -------
        list of FittingData
            The splits.
        """
        if count == 1 and (self.own_validation or self.n_rows >= ENOUGH_ROWS):
            return [self]
        rows = self.all_rows.training
        size = max(1, len(rows) // max(count, HELD_OUT_PARTS))
        place = torch.arange(len(rows), device=rows.device) // size
        if self.copies is not None:  # as many groups in each fold, in place of as many rows
            numbers = torch.unique_consecutive(self.copies, return_inverse=True)[1]
            distinct = int(numbers[-1]) + 1
            place, count = (
                numbers // max(1, distinct // max(count, HELD_OUT_PARTS)),
                min(count, distinct),
            )
        return [
            replace(self, training=rows[place != fold], validation=rows[place == fold], copies=None)
            for fold in range(count)
        ]

    @property
    def all_rows(self) -> "FittingData":
        """The same data with training on all rows; the validation rows are among them."""
        parts = [self.validation, self.training]
        return replace(
            self,
            training=Rows(
                torch.cat([part.x for part in parts]), torch.cat([part.context for part in parts])
            ),
        )

    @property
    def n_rows(self) -> int:
        """Number of rows of the table, without validation rows that the user gave."""
        return len(self.training) + (0 if self.own_validation else len(self.validation))

    @property
    def features(self) -> int:
        """Number of features."""
        return self.training.features

    def sizes(self, latent_dim: int) -> Sizes:
        """Return the sizes that networks for these rows need."""
        return Sizes(
            self.features, latent_dim, self.training.context_dim, self.image_shape, self.columns
        )

    @property
    def noise_floor(self) -> Tensor:
        """Smallest width of the noise, `(features,)`: below it, noise would only fit rounding."""
        x = self.training.x
        if self.image_shape is not None:  # many pixels are constant, so they have no spread
            return x.new_full((self.features,), CONTINUOUS_FLOOR)
        # NumPy's quantile, because torch's takes at most 2**24 numbers.
        quantile = np.quantile if self.columns is None else np.nanquantile
        values = x.cpu().numpy()
        # All cells of a column that training rows miss may be held out.
        values = np.where(np.isnan(values).all(axis=0), 0.0, values)
        low, high = quantile(values, [0.25, 0.75], axis=0)
        spread = torch.from_numpy(high - low).to(x.device)
        spread = torch.where(spread > 0, spread, 1.0).clamp_max(1.0)
        of_steps = ROUNDED_FLOOR * self.resolution
        floor = torch.maximum(CONTINUOUS_FLOOR * spread, of_steps)
        # Values that are repeated so often are spikes, however far apart others are.
        observed = [column[~column.isnan()] for column in x.unbind(dim=1)]
        repeats = [len(column) / max(len(column.unique()), 1) for column in observed]
        spikes = (self.resolution > 0) & (x.new_tensor(repeats) >= SPIKE_ROWS)
        return torch.where(spikes, of_steps, floor)

    @cached_property
    def steps(self) -> Tensor | None:
        """Width over which the values of training rows are spread; None without dequantisation.

        The shape is `(features,)`, or `(rows, features)` if columns are partly rounded.
        """
        return self._widths(self.training) if self.jitter else None

    def _widths(self, rows: Rows) -> Tensor:
        return self.resolution if self.widths_of is None else self.widths_of(rows.x)

    def as_trained(self, n_rows: int, seed: int) -> tuple[Rows, Rows]:
        """Return `n_rows` random training rows and all validation rows, dequantised, in float32."""
        rng = torch.Generator(self.training.device).manual_seed(seed)
        order = torch.randperm(len(self.training), generator=rng, device=rng.device)
        some = self.spread(self.training[order[:n_rows]], rng)
        return some.to(torch.float32), self.spread(self.validation, rng).to(torch.float32)

    def spread(self, rows: Rows, rng: torch.Generator) -> Rows:
        """Spread rounded values over their rounding steps if `jitter` is set."""
        return jittered(rows, self._widths(rows), rng) if self.jitter else rows


def _first_places(groups: np.ndarray) -> np.ndarray:
    """Return for each entry the place of the first entry of its group.

    >>> _first_places(np.array([7, 3, 7, 3]))
    array([0, 1, 0, 1])
    """
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    return first[number]


def columns_of(schema: Schema) -> Columns | None:
    """Return the kinds of the features as a model needs them; None for complete numbers."""
    if not schema.is_mixed:
        return None
    levels = [
        Levels(len(kind.levels), kind.ordered, kind.reserved, kind.frequencies)
        if isinstance(kind, CategoryColumn)
        else None
        for kind in schema.kinds
    ]
    places = zip(schema.indicated, range(schema.n_columns, schema.features), strict=True)
    return Columns(tuple(levels), tuple(map(bool, schema.incomplete)), tuple(places))
