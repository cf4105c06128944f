"""`Scorer`: log densities of rows for outlier detection, and their parts."""

from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from roundtrip.density import Method
from roundtrip.density.cells import quick_cell_surprises
from roundtrip.density.surprise import surprise_parts
from roundtrip.estimator import Roundtrip
from roundtrip.io.model_file import check_finite
from roundtrip.io.saved import FileParts, Restoring
from roundtrip.outliers.blurred import BlurredDensity
from roundtrip.outliers.cell_tails import CellTails
from roundtrip.outliers.columns import GaussianColumns
from roundtrip.outliers.explanation import TOL, Explanation, Surprises
from roundtrip.parameters import named_seed

DRAWS = 2000
"""Number of draws from the fitted density that rows are compared with."""

PATTERN_DRAWS, FEWEST_COMPLETE = 512, 200
"""Draws that rows with missing cells are compared with, and fewest complete rows that tails of
complete rows are measured on; with fewer, draws take their place."""

LARGEST_SURPRISE = 1e6
"""Replaces a surprise that is not a number, of rows beyond the range of floating point."""

FEW_DRAWS = 50
"""Number of draws whose surprise is divided into its parts, for rows that are scored by cells."""

USUAL_DRAWS = 200
"""Number of these draws whose medians an explanation is relative to."""


class Scorer:
    """Scores rows by a fitted density, under its own noise or wider noise.

    Parameters
    ----------
    density : Roundtrip
        Fitted density, in units of the mapped columns.
    columns : GaussianColumns or None
        Map of the columns, applied first.
    blurred : BlurredDensity or None
        Density under wide noise, which scores rows; None if `density` scores them.
    tails : CellTails or None, default=None
        Tails of the surprises of single cells, which score rows of any kind of columns.
    """

    def __init__(
        self,
        density: Roundtrip,
        columns: GaussianColumns | None,
        blurred: BlurredDensity | None,
        tails: CellTails | None = None,
    ) -> None:
        self.density = density
        self.columns = columns
        self.blurred = blurred
        self.tails = tails

    @classmethod
    def of_cells(cls, density: Roundtrip, rows: np.ndarray | None = None) -> "Scorer":
        """Return a scorer by the cells of rows, whose tails are those of `rows`, or of draws."""
        scorer = cls(density, None, None)
        rows = scorer._draws if rows is None else rows
        x = density.schema_.encoded(rows).x
        complete = ~x.isnan().any(dim=1)
        if complete.sum() < FEWEST_COMPLETE:  # too few for tails
            x, complete = scorer._complete_draws, torch.ones(PATTERN_DRAWS, dtype=torch.bool)
        scorer.tails = CellTails.fit(scorer._quick_surprises(x[complete]))
        return scorer

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Log density of `(rows, features)` in the user's units, `(rows,)`."""
        return self._log_density(self._mapped(rows))

    def draw_scores(self) -> np.ndarray:
        """Sorted scores of draws from the density."""
        return np.sort(self._log_density(self._draws))

    def explain(
        self, rows: np.ndarray, features: Sequence[str], index: pd.Index | None = None
    ) -> Explanation:
        """Explain the surprise of rows in the user's units."""
        return self.surprises(rows).above(self.usual_surprises, features, index)

    def surprises(self, rows: np.ndarray) -> Surprises:
        """-log p(x) of rows in the user's units, and its parts."""
        return self._surprises(self._mapped(rows))

    @cached_property
    def usual_surprises(self) -> Surprises:
        """Surprises of draws from the density, whose medians explanations are relative to."""
        if self.tails is None:
            return self._surprises(self._draws[:USUAL_DRAWS])
        # Medians need no precise surprises of each cell.
        model, seed = self.density.fitted_.prepared.model, self.density.fitted_.seed
        quick = self._quick_surprises(self._complete_draws)
        parts = surprise_parts(
            model, self._complete_draws[:FEW_DRAWS].to(model.device), tol=TOL, seed=seed
        )
        return Surprises(
            quick[:, 0], parts.residual.cpu().numpy(), parts.latent.cpu().numpy(), quick[:, 1:]
        )

    @cached_property
    def _draws(self) -> np.ndarray:
        """Draws from the fitted density in its own units, the same in every call."""
        seed = named_seed(self.density.scoring_seed_, "draws") % 2**32
        draws = self.density.sample(DRAWS, seed, rounded=False)
        schema = self.density.schema_
        if schema.has_only_numbers:
            return np.asarray(draws)
        return schema.checked_values(self.density, draws)

    @property
    def takes_any_kind(self) -> bool:
        """Whether rows may have categories, dates and missing cells: if `density` scores them."""
        return self.columns is None and self.blurred is None

    def _mapped(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.columns is None else self.columns.apply(rows)

    def _log_density(self, values: np.ndarray) -> np.ndarray:
        rows = self.density.schema_.encoded(values)
        if self.blurred is not None:
            return self.blurred.log_density(rows.x)
        if self.tails is not None:
            return self._cell_scores(values)
        method, verbose = Method(tol=self.density.tol), bool(self.density.verbose)
        # A row far out is an outlier even if its density has not converged.
        result = self.density.fitted_.density(rows, method, verbose=verbose, warn=False)
        return result.log_density

    def _cell_scores(self, values: np.ndarray) -> np.ndarray:
        """Score rows by their cells, each relative to rows with the same cells missing.

        What a cell is surprising by depends on which others are known.
        """
        assert self.tails is not None
        x = self.density.schema_.encoded(values).x
        surprises = self._quick_surprises(x)
        scores = self.tails.scores(surprises)
        missing = x.isnan()
        patterns, group = torch.unique(missing, dim=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            if pattern.any():
                rows = (group == number).numpy()
                scores[rows] = self._tails_without(pattern).scores(surprises[rows])
        return scores

    def _tails_without(self, pattern: Tensor) -> CellTails:
        """Return the tails of surprises of the model's own draws with some cells missing."""
        key = pattern.numpy().tobytes()
        if key not in self._tails_by_pattern:
            schema = self.density.schema_
            x = self._complete_draws.masked_fill(pattern, torch.nan)
            for place, column in enumerate(schema.indicated):
                x[:, schema.n_columns + place] = float(pattern[column])
            self._tails_by_pattern[key] = CellTails.fit(self._quick_surprises(x))
        return self._tails_by_pattern[key]

    @cached_property
    def _tails_by_pattern(self) -> dict[bytes, CellTails]:
        return {}

    @cached_property
    def _complete_draws(self) -> Tensor:
        """Draws from the density in scaled units, without missing cells."""
        rng = np.random.RandomState(named_seed(self.density.scoring_seed_, "parts") % 2**32)
        return self.density.fitted_.sample(torch.empty(PATTERN_DRAWS, 0), rng).double().cpu()

    def _quick_surprises(self, x: Tensor) -> np.ndarray:
        """Return rough surprises of rows and of their cells given the others, NaN if missing."""
        fitted = self.density.fitted_
        x = x.to(fitted.model.device)
        log_density, of_cells = quick_cell_surprises(fitted.prepared.model, x, seed=fitted.seed)
        both = torch.cat([-log_density[:, None], of_cells], dim=1)
        both = both.nan_to_num(nan=LARGEST_SURPRISE)
        both[:, 1:][x.isnan()] = torch.nan
        return both.cpu().numpy()

    def _surprises(self, values: np.ndarray) -> Surprises:
        fitted = self.density.fitted_
        rows = fitted.schema.encoded(values)
        if self.blurred is not None:
            return self.blurred.surprises(rows.x)
        typical = fitted.schema.encoded(self._typical()[None])
        device = fitted.model.device
        return Surprises.of(
            fitted.prepared.model,
            rows.x.to(device),
            typical.x[0].to(device),
            seed=fitted.seed,
            verbose=bool(self.density.verbose),
        )

    def _typical(self) -> np.ndarray:
        """Return the medians of the draws, or the most frequent levels, `(columns,)`."""
        schema = self.density.schema_
        if schema.has_only_numbers:
            return np.median(self._draws, axis=0)
        typical = np.nanmedian(self._draws, axis=0)
        for place in np.flatnonzero(schema.is_category[: schema.n_columns]):
            column = self._draws[:, place]
            typical[place] = np.bincount(column[~np.isnan(column)].astype(int)).argmax()
        return typical

    def file_parts(self) -> FileParts:
        """Content and tensors of a file."""
        arrays = {} if self.columns is None else dict(vars(self.columns))
        if self.tails is not None:
            arrays |= {f"tail_{name}": array for name, array in vars(self.tails).items()}
        parts = FileParts({"sigma": None}, {k: torch.from_numpy(v) for k, v in arrays.items()})
        if self.blurred is not None:
            parts.content["sigma"] = self.blurred.sigma
            # Stored because G gives slightly different centres on another processor.
            parts.tensors["centres"] = self.blurred.centres
        parts.add("density", self.density._file_parts())
        return parts

    @classmethod
    def from_file_parts(cls, parts: FileParts, how: Restoring) -> "Scorer":
        """Restore a scorer from its `file_parts`."""
        sigma, tensors = parts.content["sigma"], parts.tensors
        own = {name: each for name, each in tensors.items() if not name.startswith("density.")}
        check_finite("scorer", own)
        columns = blurred = tails = None
        if "values" in tensors:
            names = [item.name for item in fields(GaussianColumns)]
            columns = GaussianColumns(**{name: tensors[name].numpy() for name in names})
        if sigma is not None:
            blurred = BlurredDensity(tensors["centres"].to(how.device), sigma)
        if "tail_start" in tensors:
            tails = CellTails(tensors["tail_start"].numpy(), tensors["tail_scale"].numpy())
        density = Roundtrip._from_file_parts(parts.within("density"), how)
        return cls(density, columns, blurred, tails)
