"""The objective "hybrid": adversarial losses and the bound first, likelihood alone after."""

import math
from collections.abc import Mapping
from typing import Any

from roundtrip.fitting import FittingData, fit_model
from roundtrip.model import RoundtripModel
from roundtrip.training import TrainingResult

FIRST_SHARE = 1 / 3
"""Of epochs or time, for the first stage."""

FIRST_RATE = 1 / 8
"""Of the learning rate, in the first stage: adversarial training takes no more."""


def fit_hybrid(
    settings: Mapping[str, Any],
    data: FittingData,
    *,
    max_time: float | None = None,
    start: RoundtripModel | None = None,
    **arguments: Any,
) -> tuple[RoundtripModel, TrainingResult]:
    """`fit_model` in two stages: eq. (13), (14) and a little of the bound, then the bound alone.

    benchmarks/hybrid.py compares this with the sum of both from start to end.
    """
    epochs = settings["max_epochs"]  # may be infinite
    first_epochs = max(1, round(FIRST_SHARE * epochs)) if math.isfinite(epochs) else epochs
    model, first = fit_model(
        {
            **settings,
            "max_epochs": first_epochs,
            "learning_rate": FIRST_RATE * settings["learning_rate"],
        },
        data,
        max_time=None if max_time is None else FIRST_SHARE * max_time,
        start=start,
        name="fitting, adversarial losses first",
        **arguments,
    )
    if first.stopped_by == "interrupt":
        return model, first
    left = max(1, epochs - first_epochs) if math.isfinite(epochs) else epochs
    model, second = fit_model(
        {**settings, "objective": "likelihood", "max_epochs": left},
        data,
        max_time=None if max_time is None else max_time - _seconds(first),
        start=model,
        **arguments,
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
    # The second stage starts from the best weights of the first.
    best = first.n_epochs + second.best_epoch if second.best_epoch else first.best_epoch
    return TrainingResult(history, best, second.stopped_by)
