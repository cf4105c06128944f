"""The training loop: epochs, early stopping, best weights, recovery from divergence."""

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from roundtrip.model import RoundtripModel
from roundtrip.training.progress import TrainingProgress

MAX_RECOVERIES = 3


@dataclass
class TrainingResult:
    """What training leaves behind besides the weights.

    Attributes
    ----------
    history : for every loss, "validation_log_likelihood", "learning_rate", "seconds" (since the
        start) and, where validation chooses it, "sigma" a list with one entry an epoch.
    best_epoch : the epoch, counted from 1, whose weights were kept; 0 if none was completed.
    stopped_by : "max_epochs", "max_time", "patience", "interrupt" or "divergence".
    """

    history: dict[str, list[float]] = field(default_factory=dict)
    best_epoch: int = 0
    stopped_by: str = "max_epochs"

    @property
    def n_epochs(self) -> int:
        """Epochs completed."""
        return len(self.history.get("seconds", []))

    def record(self, values: dict[str, float]) -> None:
        """Append one epoch."""
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)


class _DivergedError(Exception):
    """A loss or weight is no longer a finite number."""


class Objective(Protocol):
    """What is trained: networks that a `step` improves, at a learning rate with a schedule."""

    networks: nn.ModuleDict
    kept: RoundtripModel
    learning_rate: float

    def step(self, x: Tensor) -> dict[str, Tensor]:
        """One update on a batch; returns its losses by name."""

    def schedule(self, fraction: float) -> None:
        """Adapt to the share of training that is over."""

    def restart(self, learning_rate: float) -> None:
        """Go on from the present weights at another learning rate."""


class Validation(Protocol):
    """Scores the kept model after an epoch; the higher, the better."""

    selection_epochs: int | None

    def __call__(self, epoch: int) -> float:
        """Mean log-likelihood of held-out rows; epochs count from 1."""

    def report(self) -> dict[str, float]:
        """Further numbers for the history."""


class _Budget:
    """How much of training is over, by steps or by time, whichever is farther."""

    def __init__(self, n_steps: int, max_time: float | None) -> None:
        self.start = time.perf_counter()
        self.steps = 0
        self._n_steps = n_steps
        self._max_time = max_time
        self.slowest_validation = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def time_fraction(self) -> float:
        if self._max_time is None:
            return 0.0
        # The last validation has to fit in, too.
        return self.seconds / max(self._max_time - self.slowest_validation, 1e-9)

    @property
    def fraction(self) -> float:
        return max(self.steps / self._n_steps, self.time_fraction)


def train(
    objective: Objective,
    stream: Iterator[Tensor],
    validation: Validation,
    *,
    steps_per_epoch: int,
    max_epochs: int,
    patience: int,
    max_time: float | None = None,
    verbose: bool = False,
) -> TrainingResult:
    """Train until the validation log-likelihood stops improving; leave the best weights in place.

    Ends after `patience` epochs without improvement (counted once sigma is settled), after
    `max_epochs`, after `max_time` seconds, or at Ctrl-C. If a loss turns NaN or infinite, training
    goes back to the last good weights at half the learning rate, at most three times. Whatever
    ends it, the model holds finite weights: those of the best epoch.
    """
    result = TrainingResult()
    best = good = _snapshot(objective.networks)
    best_score = -math.inf
    recoveries = 0
    budget = _Budget(steps_per_epoch * max_epochs, max_time)
    with TrainingProgress(max_epochs, steps_per_epoch, enabled=verbose) as progress:
        try:
            while result.n_epochs < max_epochs:
                epoch = result.n_epochs + 1
                try:
                    losses = _epoch(objective, stream, steps_per_epoch, budget, progress.step)
                    before = budget.seconds
                    score = validation(epoch)
                    budget.slowest_validation = max(
                        budget.slowest_validation, budget.seconds - before
                    )
                    if not math.isfinite(score):
                        raise _DivergedError
                except _DivergedError:
                    objective.networks.load_state_dict(good)
                    recoveries += 1
                    if recoveries > MAX_RECOVERIES:
                        result.stopped_by = "divergence"
                        break
                    objective.restart(objective.learning_rate / 2)
                    continue
                good = _snapshot(objective.networks)
                values = {
                    **losses,
                    "validation_log_likelihood": score,
                    **validation.report(),
                    "learning_rate": objective.learning_rate,
                    "seconds": budget.seconds,
                }
                result.record(values)
                progress.epoch(epoch, values)
                if epoch == validation.selection_epochs:
                    best_score = -math.inf  # sigma is settled: only now the search begins
                if score > best_score:
                    best_score, best, result.best_epoch = score, good, epoch
                elif epoch - max(result.best_epoch, validation.selection_epochs or 0) >= patience:
                    result.stopped_by = "patience"
                    break
                if budget.time_fraction >= 1:
                    result.stopped_by = "max_time"
                    break
        except KeyboardInterrupt:
            result.stopped_by = "interrupt"
    objective.networks.load_state_dict(best)
    objective.networks.eval()
    _warn(result, recoveries, objective.learning_rate)
    return result


def _epoch(
    objective: Objective,
    stream: Iterator[Tensor],
    steps: int,
    budget: _Budget,
    on_step: Callable[[], None],
) -> dict[str, float]:
    """Mean losses over `steps` updates; raises `_DivergedError` at the first that is not finite."""
    total: dict[str, Tensor] = {}
    objective.networks.train()
    taken = 0
    while taken < steps:
        if taken and budget.time_fraction >= 1:
            break
        objective.schedule(budget.fraction)
        losses = objective.step(next(stream))
        for name, value in losses.items():
            total[name] = total.get(name, torch.zeros_like(value)) + value
        if not torch.stack(list(losses.values())).isfinite().all():
            raise _DivergedError
        taken += 1
        budget.steps += 1
        on_step()
    # The last update is seen by no loss yet.
    if not all(torch.isfinite(p).all() for p in objective.networks.state_dict().values()):
        raise _DivergedError
    return {name: value.item() / taken for name, value in total.items()}


def _snapshot(networks: nn.Module) -> dict[str, Any]:
    return copy.deepcopy(networks.state_dict())


def _warn(result: TrainingResult, recoveries: int, learning_rate: float) -> None:
    kept = (
        f"the weights of epoch {result.best_epoch} are kept"
        if result.best_epoch
        else "no epoch was completed: the model is untrained"
    )
    if result.stopped_by == "divergence":
        message = (
            f"training diverged {recoveries} times (NaN or infinite losses), although the learning "
            f"rate was halved down to {learning_rate:.2g}; {kept}. Try a smaller learning_rate, or "
            "scale='standard'."
        )
    elif recoveries:
        message = (
            f"training diverged {recoveries} time(s) (NaN or infinite losses) and went on from the "
            f"last good weights with the learning rate halved to {learning_rate:.2g}; {kept}."
        )
    elif result.stopped_by == "interrupt":
        message = f"training was interrupted after {result.n_epochs} epochs; {kept}."
    else:
        return
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
