"""`TrainingResult`: the course of a training."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roundtrip.parameters import check_choice, check_integer, check_number

ALWAYS_RECORDED = ("validation_log_likelihood", "learning_rate", "seconds")
"""Entries of the history that every training has."""

REASONS = ("max_epochs", "max_time", "patience", "interrupt", "divergence", "validation")
"""What may end a training."""


@dataclass
class TrainingResult:
    """The course of a training.

    Attributes
    ----------
    history : dict of str to list of float
        One value per epoch of every loss, "validation_log_likelihood", "learning_rate", "seconds"
        since the start and, if validation chooses it, "sigma".
    best_epoch : int
        Epoch, counted from 1, whose weights are kept; 0 if no epoch was completed.
    stopped_by : str
        "max_epochs", "max_time", "patience", "interrupt" or "divergence"; "validation" if
        cross-validation chose the number of epochs; empty during training.
    first_score : float
        Validation log-likelihood before the first step; minus infinity if it was not computed.
    """

    history: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in ALWAYS_RECORDED}
    )
    best_epoch: int = 0
    stopped_by: str = ""
    first_score: float = -math.inf

    @property
    def n_epochs(self) -> int:
        """Number of completed epochs."""
        return len(self.history.get("seconds", []))

    @property
    def best_trained_epoch(self) -> int:
        """The best epoch, or the best after the first step if the start is better than all.

        Training may first lose and then gain: patience counts from here.
        """
        scores = self.history["validation_log_likelihood"]
        if self.best_epoch or not scores:
            return self.best_epoch
        return scores.index(max(scores)) + 1

    @property
    def seconds(self) -> float:
        """Time of all epochs."""
        return self.history["seconds"][-1] if self.n_epochs else 0.0

    def followed_by(self, second: "TrainingResult") -> "TrainingResult":
        """Join the results of two stages; a loss is NaN in a stage that does not have it."""
        history: dict[str, list[float]] = {}
        for name in {**self.history, **second.history}:
            values = second.history.get(name, [math.nan] * second.n_epochs)
            if name == "seconds":
                values = [self.seconds + value for value in values]
            history[name] = self.history.get(name, [math.nan] * self.n_epochs) + values
        best = self.n_epochs + second.best_epoch if second.best_epoch else self.best_epoch
        return TrainingResult(history, best, second.stopped_by, self.first_score)

    def record(self, values: dict[str, float]) -> None:
        """Append one epoch."""
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)


def check_record(content: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a record of a fit, from a model file, that no fit gives.

    Parameters
    ----------
    content : mapping
        "n_iter", "best_epoch", "stopped_by", "prior_gain" and "history".
    """
    n_epochs, history = content["n_iter"], content["history"]
    check_integer("n_iter", n_epochs, minimum=0)
    check_integer("best_epoch", content["best_epoch"], minimum=0)
    check_number("prior_gain", content["prior_gain"], above=-math.inf)
    check_choice("stopped_by", content["stopped_by"], REASONS)
    for name in ALWAYS_RECORDED:
        if len(history[name]) != n_epochs:
            raise ValueError(f"{name} of {len(history[name])} epochs, but there were {n_epochs}")
    for name, values in history.items():
        if not all(isinstance(value, int | float) for value in values):
            raise ValueError(f"the history of {name} has more than numbers")
