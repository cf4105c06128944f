"""`FittedDensity`: a trained model, the schema of its rows and a seed; all that scoring needs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roundtrip.data import Rows, Schema
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.density.estimate import evaluate, evaluate_mean, with_sigma
from roundtrip.density.mean import MeanDensity
from roundtrip.density.method import Method
from roundtrip.density.part_encoder import PartEncoder
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.result import DensityEstimate
from roundtrip.model.core import RoundtripModel

MOST_REDRAWS = 20
"""How often samples outside of the range of fit are drawn again."""


class FittedDensity:
    """Log densities, samples and codes of checked rows.

    Parameters
    ----------
    model : RoundtripModel
        Model in evaluation mode, for rows in scaled units.
    schema : Schema
        Conversion between the user's rows and those of the model.
    seed : int
        Seed of all draws in scoring.
    part_encoder : PartEncoder or None, default=None
        Encoder of parts of rows, if it was trained; otherwise the first question trains it.
    """

    def __init__(
        self,
        model: RoundtripModel,
        schema: Schema,
        seed: int,
        part_encoder: PartEncoder | None = None,
    ) -> None:
        self.model = model
        self.schema = schema
        self.seed = seed
        self._precise = model.with_precise_encoder()
        self.prepared = PreparedModel(
            self._precise if model.has_posterior else model, nets=True, part_encoder=part_encoder
        )

    def __reduce__(self) -> tuple[Any, ...]:
        parts = self.prepared.known_part_encoder
        return FittedDensity, (self.model, self.schema, self.seed, parts)

    def density(
        self,
        rows: Rows,
        method: Method,
        *,
        sigma: float | None = None,
        verbose: bool = False,
        warn: bool = True,
    ) -> DensityEstimate:
        """Estimate log densities in the user's units, one entry per row.

        `warn` is whether to issue a `DensityWarning` about rows that have not converged.
        """
        prepared = self.prepared
        if sigma is not None:
            prepared = PreparedModel.precise(with_sigma(self.model, sigma))
        rows = rows.to(self.model.device)
        result = evaluate(prepared, rows, method, seed=self.seed, verbose=verbose, warn=warn)
        return result.shifted(self.schema.log_dets(rows.x))

    def mean(self, rows: Rows, tol: float, *, verbose: bool = False) -> MeanDensity:
        """Estimate the mean log density of the rows in the user's units."""
        rows = rows.to(self.model.device)
        result = evaluate_mean(self.prepared, rows, tol=tol, seed=self.seed, verbose=verbose)
        complete = not torch.isnan(rows.x).any()
        log_det = self.schema.log_det if complete else self.schema.log_dets(rows.x).mean()
        return replace(result, mean=result.mean + float(log_det))

    def sample(
        self,
        context: Tensor,
        rng: np.random.RandomState,
        *,
        outside: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Draw one x per row of `context`, `(rows, features)` in scaled units.

        Cells that `outside` marks, given `(rows, features)`, are drawn again. Given z the features
        are independent, so that the other cells of the row may stay. Rows whose z leads outside
        again and again are drawn anew.
        """
        context = context.to(self.model.device)
        x = context.new_empty((len(context), self.schema.features), dtype=torch.float64)
        rows = torch.arange(len(context), device=x.device)
        for _ in range(MOST_REDRAWS if outside else 1):
            x[rows] = self._sample(context[rows], rng, outside).double()
            if outside is None or not (left := outside(x[rows]).any(dim=1)).any():
                break
            rows = rows[left]
        return x

    def _sample(
        self,
        context: Tensor,
        rng: np.random.RandomState,
        outside: Callable[[Tensor], Tensor] | None,
    ) -> Tensor:
        z = self.model.sample_codes(len(context), rng)
        noise_rng = torch.Generator().manual_seed(int(rng.randint(2**31 - 1)))

        def draw(z: Tensor, context: Tensor) -> Tensor:
            return self.model.noise.sample(self.model.outputs_of(z, context), noise_rng)

        x = self._in_blocks(draw, z, context, EVALUATIONS_PER_CALL)
        for _ in range(MOST_REDRAWS if outside else 0):
            assert outside is not None
            cells = outside(x)
            rows = cells.any(dim=1)
            if not rows.any():
                break
            again = self._in_blocks(draw, z[rows], context[rows], EVALUATIONS_PER_CALL)
            x[rows] = torch.where(cells[rows], again, x[rows])
        return x

    def encode(self, rows: Rows) -> Tensor:
        """Return H(x), `(rows, latent_dim)`; missing cells count as means."""
        model = self._precise
        if model.inputs is None and bool(rows.x.isnan().any()):
            model = model.observed(torch.zeros(rows.features))
        return self._in_blocks(model.encode, rows.x, rows.context, ROWS_PER_ENCODER_CALL)

    def generate(self, z: Tensor, context: Tensor) -> Tensor:
        """Return G(z), `(rows, features)` in scaled units."""
        return self._in_blocks(self.model.generate, z, context, EVALUATIONS_PER_CALL)

    @torch.no_grad()
    def _in_blocks(
        self, function: Callable[..., Tensor], first: Tensor, second: Tensor, size: int
    ) -> Tensor:
        device = self.model.device
        return map_blocks(function, (first.to(device), second.to(device)), size)
