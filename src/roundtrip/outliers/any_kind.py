"""Fits of detectors to rows with categories, dates or missing cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from roundtrip.data.libraries import as_frame
from roundtrip.data.table_format import frame_of_array
from roundtrip.estimator import Roundtrip
from roundtrip.outliers.scorer import Scorer


@dataclass(frozen=True)
class FittedCells:
    """Result of a fit.

    Attributes
    ----------
    scorer : Scorer
        What scores rows.
    held_out_scores : numpy.ndarray
        Scores of the rows that were held out.
    """

    scorer: Scorer
    held_out_scores: np.ndarray


def fit_cells(
    X: Any,
    density: Roundtrip,
    *,
    share: float,
    rng: np.random.Generator,
    least: int,
    limit: dict[str, Any],
) -> FittedCells:
    """Fit a density and the tails of its cells to a table, but for held-out rows.

    Parameters
    ----------
    X : DataFrame of any library, or array
        The rows.
    density : Roundtrip
        Density to fit.
    share : float
        Share of the rows that are held out.
    rng : numpy.random.Generator
        Source of their choice.
    least : int
        Fewer rows raise `ValueError`.
    limit : dict
        `max_time` and `checkpoint` of the fit.

    Returns
    -------
    FittedCells
        The scorer, and scores of the held-out rows.
    """
    _, frame = as_frame(X)
    table = frame_of_array(X) if frame is None else frame
    if len(table) < least:
        raise ValueError(f"a detector needs at least {least} rows, got {len(table)}")
    order = rng.permutation(len(table))
    count = min(max(1, round(share * len(table))), len(table) - 2)
    held_out, training = order[:count], order[count:]
    density.fit(table.to_numpy()[training] if frame is None else table.iloc[training], **limit)
    values = density.schema_.checked_values(density, X)
    scorer = Scorer.of_cells(density, values[training])
    return FittedCells(scorer, scorer.scores(values[held_out]))
