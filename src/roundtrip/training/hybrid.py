"""The objective "hybrid": the paper's losses first, likelihood alone after."""

import math
from collections.abc import Mapping
from typing import Any

from roundtrip.model.core import RoundtripModel
from roundtrip.training import TrainingResult
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.run import FittingData, fit_model

FIRST_SHARE = 1 / 3
"""Of epochs or time, for the first stage."""

FIRST_RATE = 1 / 8
"""Of the learning rate, in the first stage: adversarial training takes no more."""

BOUND_WEIGHT = 0.01
"""Of the bound beside the adversarial losses: enough for noise and posterior to follow."""

CONSTANTS = {"first_share": FIRST_SHARE, "first_rate": FIRST_RATE, "bound_weight": BOUND_WEIGHT}
"""What a fit depends on besides its settings; results are kept by both."""


def fit_hybrid(
    settings: Mapping[str, Any],
    data: FittingData,
    *,
    latent_dim: int,
    seed: int,
    validation_seed: int,
    max_time: float | None = None,
    start: RoundtripModel | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[RoundtripModel, TrainingResult]:
    """`fit_model` in two stages: eq. (13), (14) and a little of the bound, then the bound alone.

    The second stage starts from the best weights of the first by validation likelihood, so that
    adversarial training that goes astray costs time, but no more.
    """
    epochs = settings["max_epochs"]  # may be infinite
    first_epochs = round(FIRST_SHARE * epochs) if math.isfinite(epochs) else epochs
    first = TrainingResult()
    if first_epochs > 0:
        start, first = fit_model(
            {
                **settings,
                "max_epochs": first_epochs,
                "learning_rate": FIRST_RATE * settings["learning_rate"],
            },
            data,
            latent_dim=latent_dim,
            seed=seed,
            validation_seed=validation_seed,
            max_time=None if max_time is None else FIRST_SHARE * max_time,
            start=start,
            checkpoint=checkpoint,
            bound_weight=BOUND_WEIGHT,
            name="fitting, adversarial losses first",
        )
        if first.stopped_by == "interrupt":
            return start, first
    model, second = fit_model(
        {**settings, "objective": "likelihood", "max_epochs": epochs - first.n_epochs},
        data,
        latent_dim=latent_dim,
        seed=seed,
        validation_seed=validation_seed,
        max_time=None if max_time is None else max_time - _seconds(first),
        start=start,
        checkpoint=checkpoint,
        name="fitting, likelihood after",
    )
    return model, _joined(first, second)


def _seconds(result: TrainingResult) -> float:
    return result.history["seconds"][-1] if result.n_epochs else 0.0


def _joined(first: TrainingResult, second: TrainingResult) -> TrainingResult:
    """One history of both stages; NaN where a stage has no such loss."""
    history: dict[str, list[float]] = {}
    for name in {**first.history, **second.history}:
        values = second.history.get(name, [math.nan] * second.n_epochs)
        if name == "seconds":
            values = [_seconds(first) + value for value in values]
        history[name] = first.history.get(name, [math.nan] * first.n_epochs) + values
    best = first.n_epochs + second.best_epoch if second.best_epoch else first.best_epoch
    return TrainingResult(history, best, second.stopped_by)
