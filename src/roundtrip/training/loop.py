"""The training loop: epochs, early stopping, best weights, recovery from divergence."""

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from roundtrip.training.adversarial import AdversarialObjective
from roundtrip.training.progress import TrainingProgress
from roundtrip.training.validation import Validation

MAX_RECOVERIES = 3


@dataclass
class TrainingResult:
    """What training leaves behind besides the weights.

    Attributes
    ----------
    history : for every loss, "validation_log_likelihood", "sigma", "learning_rate" and "seconds"
        (since the start) a list with one entry an epoch.
    best_epoch : the epoch, counted from 1, whose weights were kept; 0 if none was completed.
    stopped_by : "max_epochs", "patience", "interrupt" or "divergence".
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


def train(
    objective: AdversarialObjective,
    stream: Iterator[Tensor],
    validation: Validation,
    *,
    steps_per_epoch: int,
    max_epochs: int,
    patience: int,
    verbose: bool = False,
) -> TrainingResult:
    """Train until the validation log-likelihood stops improving; leave the best weights in place.

    Ends after `patience` epochs without improvement (counted once sigma is settled), after
    `max_epochs`, or at Ctrl-C. If a loss turns NaN or infinite, training goes back to the last
    good weights at half the learning rate, at most three times. Whatever ends it, the model holds
    finite weights: those of the best epoch.
    """
    result = TrainingResult()
    best = good = _snapshot(objective.networks)
    best_score = -math.inf
    recoveries = 0
    start = time.perf_counter()
    with TrainingProgress(max_epochs, steps_per_epoch, enabled=verbose) as progress:
        try:
            while result.n_epochs < max_epochs:
                epoch = result.n_epochs + 1
                try:
                    losses = _epoch(objective, stream, steps_per_epoch, progress.step)
                    score = validation(epoch)
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
                    "sigma": validation.model.sigma.item(),
                    "learning_rate": objective.learning_rate,
                    "seconds": time.perf_counter() - start,
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
        except KeyboardInterrupt:
            result.stopped_by = "interrupt"
    objective.networks.load_state_dict(best)
    objective.networks.eval()
    _warn(result, recoveries, objective.learning_rate)
    return result


def _epoch(
    objective: AdversarialObjective,
    stream: Iterator[Tensor],
    steps: int,
    on_step: Callable[[], None],
) -> dict[str, float]:
    """Mean losses over `steps` updates; raises `_DivergedError` at the first that is not finite."""
    total: dict[str, Tensor] = {}
    objective.networks.train()
    for _ in range(steps):
        losses = objective.step(next(stream))
        for name, value in losses.items():
            total[name] = total.get(name, torch.zeros_like(value)) + value
        if not torch.stack(list(losses.values())).isfinite().all():
            raise _DivergedError
        on_step()
    # The last update is seen by no loss yet.
    if not all(torch.isfinite(p).all() for p in objective.networks.state_dict().values()):
        raise _DivergedError
    return {name: value.item() / steps for name, value in total.items()}


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
