"""Wider noise for conditional models, if held-out rows say so.

A network that predicts a column from the context knows the training rows better than others, so
that the noise around its predictions comes out too narrow. Widths and weights of the noise are
therefore adjusted after training, by the likelihood of rows that a fold has not seen.
"""

from collections.abc import Sequence

import numpy as np
import torch

from roundtrip.model.core import RoundtripModel
from roundtrip.training.data import FittingData
from roundtrip.training.validators import BoundValidation

MOST_ROWS = 500
"""Held-out rows of a fold that are scored with every setting."""


def calibrate(
    model: RoundtripModel,
    fold_models: Sequence[RoundtripModel],
    folds: Sequence[FittingData],
    *,
    draws: int,
    seed: int,
) -> None:
    """Choose the calibration of the noise by the held-out rows of all folds, for all models.

    Parameters
    ----------
    model : RoundtripModel
        The trained model, which has seen all rows or is the model of a fold.
    fold_models, folds : sequence of RoundtripModel, sequence of FittingData
        Models of the folds, and the rows that each was trained on and validated by.
    draws : int
        Draws of z per row for the bound of held-out rows.
    seed : int
        Seed of the draws.
    """
    settings = model.noise.calibrations
    if not settings:
        return
    try:
        best = _best_setting(settings, fold_models, folds, draws, seed)
    except KeyboardInterrupt:  # the training before must not be lost
        best = settings[0]
    for each in (model, *fold_models):
        each.noise.calibrate(best)


def _best_setting(
    settings: Sequence[tuple[float, ...]],
    fold_models: Sequence[RoundtripModel],
    folds: Sequence[FittingData],
    draws: int,
    seed: int,
) -> tuple[float, ...]:
    """Return the setting at which held-out rows are likeliest."""
    scores = np.zeros(len(settings))
    for fitted, fold in zip(fold_models, folds, strict=False):
        rng = torch.Generator(fold.validation.device).manual_seed(seed)
        held_out = fold.spread(fold.validation[:MOST_ROWS], rng).to(torch.float32)
        validation = BoundValidation(fitted, held_out, draws=draws, seed=seed)
        for number, setting in enumerate(settings):
            fitted.noise.calibrate(setting)
            scores[number] += validation(0)
    return settings[int(np.argmax(scores))]
