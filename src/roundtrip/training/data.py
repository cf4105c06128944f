"""The rows that a fit trains on and validates with."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Rows, Schema
from roundtrip.model.networks import ImageShape, Sizes
from roundtrip.training.batches import jittered
from roundtrip.training.settings import Validation

CONTINUOUS_FLOOR = 1e-3
"""Smallest noise of a column, in units of the spread of its middle half."""

ROUNDED_FLOOR = 0.05
"""Smallest noise of a rounded column, in units of its rounding step."""


@dataclass(frozen=True)
class FittingData:
    """Scaled rows to train on and to validate with, and how coarse their columns are.

    Attributes
    ----------
    training, validation : Rows
        float64 on the device of training.
    resolution : Tensor
        `(features,)` rounding step of each column in scaled units, 0 if it is not rounded.
    jitter : bool
        Whether rounded columns are spread over their steps.
    log_det : float
        Of the scaling.
    image_shape : tuple of int or None
        Height, width and channels of images.
    """

    training: Rows
    validation: Rows
    resolution: Tensor
    jitter: bool
    log_det: float
    image_shape: ImageShape | None = None

    def __post_init__(self) -> None:
        for rows in (self.training, self.validation):
            if not torch.isfinite(rows.x.float()).all():
                raise ValueError(
                    "the table spans a range too wide for float32; rescale its columns"
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
        rng: np.random.RandomState,
        device: torch.device,
    ) -> Self:
        """Divide rows into those to train on and those to validate with.

        `held_out` are rows to validate with; None: a share of `rows`, drawn by `rng`.
        """
        if held_out is None:
            order = torch.from_numpy(rng.permutation(len(rows)))
            count = min(max(1, round(validation.fraction * len(rows))), len(rows) - 1)
            rows, held_out = rows[order[count:]], rows[order[:count]]
        else:
            held_out = held_out[torch.from_numpy(rng.permutation(len(held_out)))]
        assert validation.rows != "auto"
        return cls(
            rows.to(device),
            held_out[: validation.rows].to(device),
            resolution=torch.from_numpy(schema.scaled_resolution).to(device),
            jitter=dequantize and bool((schema.resolution > 0).any()),
            log_det=schema.log_det,
            image_shape=None if schema.images is None else schema.images.shape,
        )

    @property
    def features(self) -> int:
        """Columns of x."""
        return self.training.features

    def sizes(self, latent_dim: int) -> Sizes:
        """What networks for these rows are built for."""
        return Sizes(self.features, latent_dim, self.training.context_dim, self.image_shape)

    @property
    def noise_floor(self) -> Tensor:
        """The width below which noise would only follow the rounding of a column, `(features,)`."""
        x = self.training.x
        if self.image_shape is not None:  # most pixels are the same in most images
            return x.new_full((self.features,), CONTINUOUS_FLOOR)
        # NumPy's quantile, because torch's takes no more than 2**24 numbers.
        low, high = np.quantile(x.cpu().numpy(), [0.25, 0.75], axis=0)
        spread = torch.from_numpy(high - low).to(x.device)
        spread = torch.where(spread > 0, spread, 1.0).clamp_max(1.0)
        return torch.maximum(CONTINUOUS_FLOOR * spread, ROUNDED_FLOOR * self.resolution)

    @property
    def steps(self) -> Tensor | None:
        """How far each column is spread, `(features,)`; None if nothing is."""
        return self.resolution if self.jitter else None

    def as_trained(self, n_rows: int, seed: int) -> tuple[Rows, Rows]:
        """Some training rows and all validation rows as networks see them, rounding spread."""
        rng = torch.Generator(self.training.device).manual_seed(seed)
        order = torch.randperm(len(self.training), generator=rng, device=rng.device)
        some = self.spread(self.training[order[:n_rows]], rng)
        return some.to(torch.float32), self.spread(self.validation, rng).to(torch.float32)

    def spread(self, rows: Rows, rng: torch.Generator) -> Rows:
        """Rows with rounded columns spread over their steps, if that is wanted."""
        return rows if self.steps is None else jittered(rows, self.steps, rng)
