"""Wider noise for conditional models of small tables, if held-out rows say so.

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
    scores = np.zeros(len(settings))
    for fitted, fold in zip(fold_models, folds, strict=False):
        rng = torch.Generator(fold.validation.device).manual_seed(seed)
        held_out = fold.spread(fold.validation, rng).to(torch.float32)
        validation = BoundValidation(fitted, held_out, draws=draws, seed=seed)
        for number, setting in enumerate(settings):
            fitted.noise.calibrate(setting)
            scores[number] += validation(0)
    best = settings[int(np.argmax(scores))]
    for each in (model, *fold_models):
        each.noise.calibrate(best)
