"""The training loop: epochs, early stopping, the best weights and recovery from divergence."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol, Self

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from roundtrip.data import Rows
from roundtrip.io.progress import TrainingProgress
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.objective import Trainer, Validator
from roundtrip.training.result import TrainingResult

MAX_RECOVERIES = 3


class _DivergedError(Exception):
    """A loss or weight is no longer a finite number, or the likelihood has collapsed."""


class Stream(Protocol):
    """Endless batches of rows."""

    def __next__(self) -> Rows: ...

    def state_dict(self) -> dict[str, Any]:
        """Return everything that further batches depend on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""


class _Budget:
    """The fraction of training that is over, by steps or by time, whichever is larger."""

    def __init__(self, n_steps: float, max_time: float | None) -> None:
        self._start = time.perf_counter()
        self.steps = 0
        self._n_steps = n_steps
        self._max_time = max_time
        self.slowest_validation = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def spent(self, steps: int, seconds: float) -> None:
        """Add the steps and the time of an earlier process."""
        self.steps += steps
        self._start -= seconds

    @property
    def time_fraction(self) -> float:
        if self._max_time is None:
            return 0.0
        # The last validation must fit into the time limit, too.
        return self.seconds / max(self._max_time - self.slowest_validation, 1e-9)

    @property
    def fraction(self) -> float:
        return max(self.steps / self._n_steps, self.time_fraction)


def train(
    trainer: Trainer,
    stream: Stream,
    validation: Validator,
    *,
    steps_per_epoch: int,
    max_epochs: float,
    patience: float,
    last_epoch: int | None = None,
    falling_rate: bool = True,
    max_time: float | None = None,
    largest_fall: float = math.inf,
    checkpoint: Checkpoint | None = None,
    key: str = "training",
    description: str = "fitting",
    span: tuple[float, float] = (0.0, 1.0),
    unit: str = "rows",
    verbose: bool = False,
) -> TrainingResult:
    """Train until the validation log-likelihood stops improving, and load the best weights.

    Training ends after `patience` epochs without improvement, `max_epochs`, `max_time` or Ctrl-C.
    If a loss becomes NaN or infinite, or the bound collapses, training returns to the last good
    weights and halves the learning rate, at most three times. In every case the model ends with
    the finite weights of the best epoch.

    Parameters
    ----------
    trainer : Trainer
        Networks and their updates; for the paper's objective those of eq. (15).
    stream : Stream
        Batches of training rows.
    validation : Validator
        Score of the model after each epoch.
    steps_per_epoch : int
        Updates per epoch.
    max_epochs : float
        Largest number of epochs, over which the learning rate falls; may be infinite.
    patience : float
        Epochs without improvement after which training stops, counted once sigma is fixed.
    last_epoch : int, default=None
        Epoch after which training ends although the learning rate has not fallen to its end.
    falling_rate : bool, default=True
        Whether the learning rate follows its schedule. Otherwise it stays at its highest value,
        and training also waits for a third as many epochs as the best one took.
    max_time : float, default=None
        Time limit in seconds.
    largest_fall : float, default=inf
        Nats by which the bound of an epoch may be below that of the best one.
    checkpoint : Checkpoint, default=None
        File that keeps the state between epochs. Training resumes from a state found there.
    key : str, default="training"
        Name of this training in the checkpoint.
    description : str, default="fitting"
        Name of this training in the progress bar and in warnings.
    span : tuple of float, default=(0.0, 1.0)
        Where this training starts and ends in the progress of the whole fit.
    unit : str, default="rows"
        Word for rows in the progress bar.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    TrainingResult
        History, best epoch and reason for stopping.
    """
    budget = _Budget(steps_per_epoch * max_epochs, max_time)
    state = _Progress(best=_snapshot(trainer.networks), good=_snapshot(trainer.networks))
    if checkpoint is not None and (kept := checkpoint.state(key)) is not None:
        trainer.load_state_dict(kept["trainer"])
        stream.load_state_dict(kept["stream"])
        budget.spent(**kept["budget"])
        state = _Progress.restored(kept["progress"])
    elif validation.scores_start:
        score = validation(0)
        if math.isfinite(score):
            state.best_score = state.result.first_score = score
    result = state.result
    if last_epoch == 0:
        result.stopped_by = "validation"
    ended_before = bool(result.stopped_by)

    def everything() -> dict[str, Any]:
        return {
            "trainer": trainer.state_dict(),
            "stream": stream.state_dict(),
            "budget": {"steps": budget.steps, "seconds": budget.seconds},
            "progress": state.state_dict(),
        }

    with TrainingProgress(description, unit=unit, span=span, enabled=verbose) as progress:
        try:
            while not result.stopped_by:
                epoch = result.n_epochs + 1
                try:
                    losses = _epoch(
                        trainer, stream, steps_per_epoch, budget, progress.step, falling_rate
                    )
                    before = budget.seconds
                    score = validation(epoch)
                    budget.slowest_validation = max(
                        budget.slowest_validation, budget.seconds - before
                    )
                    # The bound of training rows: that of held-out rows also falls by overfitting.
                    highest = max(result.history.get("bound", [-math.inf]))
                    collapsed = losses.get("bound", math.inf) < highest - largest_fall
                    weights = _snapshot(trainer.networks)
                    # No loss has been computed yet after the last update.
                    finite = all(bool(part.isfinite().all()) for part in weights.values())
                    if collapsed or not (finite and math.isfinite(score)):
                        raise _DivergedError
                except _DivergedError:
                    trainer.networks.load_state_dict(state.good)
                    state.recoveries += 1
                    if state.recoveries > MAX_RECOVERIES:
                        result.stopped_by = "divergence"
                        break
                    trainer.restart(trainer.learning_rate / 2)
                    continue
                values = {
                    **losses,
                    "validation_log_likelihood": score,
                    **validation.report(),
                    "learning_rate": trainer.learning_rate,
                    "seconds": budget.seconds,
                }
                progress.epoch(epoch, values)
                state.take_in(epoch, values, weights, validation)
                settled = max(result.best_trained_epoch, validation.selection_epochs or 0)
                if epoch - settled >= max(patience, 0 if falling_rate else settled / 3):
                    result.stopped_by = "patience"
                elif epoch == last_epoch:
                    result.stopped_by = "validation"
                elif budget.time_fraction >= 1:
                    result.stopped_by = "max_time"
                elif epoch == max_epochs:
                    result.stopped_by = "max_epochs"
                elif checkpoint is not None:
                    checkpoint.offer(key, everything)
        except KeyboardInterrupt:
            result.stopped_by = "interrupt"
    if checkpoint is not None and not ended_before and result.stopped_by != "interrupt":
        checkpoint.keep(key, everything())
    trainer.networks.load_state_dict(state.best)
    trainer.networks.eval()
    # A training at a constant rate is a trial, unless it ends at an epoch that trials have chosen.
    if falling_rate or last_epoch is not None or result.stopped_by == "interrupt":
        _warn(description, result, state.recoveries, trainer.learning_rate)
    return result


@dataclass
class _Progress:
    """State of training between two epochs."""

    best: dict[str, Any]
    """Weights of the best epoch."""
    good: dict[str, Any]
    """Weights of the last epoch."""
    best_score: float = -math.inf
    recoveries: int = 0
    result: TrainingResult = field(default_factory=TrainingResult)

    def take_in(
        self, epoch: int, values: dict[str, float], weights: dict[str, Any], validation: Validator
    ) -> None:
        """Record an epoch, and keep its weights if it is the best so far."""
        self.result.record(values)
        self.good = weights
        score = values["validation_log_likelihood"]
        if epoch == validation.selection_epochs:
            self.best_score = -math.inf  # scores at other sigmas do not count
        if score > self.best_score:
            self.best_score, self.best, self.result.best_epoch = score, weights, epoch

    def state_dict(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)} | {
            "result": asdict(self.result)
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        return cls(**(state | {"result": TrainingResult(**state["result"])}))


def _epoch(
    trainer: Trainer,
    stream: Stream,
    steps: int,
    budget: _Budget,
    on_step: Callable[[float, int], None],
    falling_rate: bool,
) -> dict[str, float]:
    """Return mean losses over `steps` updates; raise `_DivergedError` if one is not finite."""
    total: dict[str, Tensor] = {}
    trainer.networks.train()
    taken = 0
    while taken < steps:
        if taken and budget.time_fraction >= 1:
            break
        trainer.schedule(budget.fraction if falling_rate else 0.0)
        batch = next(stream)
        losses = trainer.step(batch)
        for name, value in losses.items():
            total[name] = total.get(name, torch.zeros_like(value)) + value
        if not torch.stack(list(losses.values())).isfinite().all():
            raise _DivergedError
        taken += 1
        budget.steps += 1
        on_step(budget.fraction, len(batch))
    return {name: value.item() / taken for name, value in total.items()}


def _snapshot(networks: nn.Module) -> dict[str, Tensor]:
    # Not a deep copy, which takes five times as long.
    return {name: part.clone() for name, part in networks.state_dict().items()}


def _warn(description: str, result: TrainingResult, recoveries: int, learning_rate: float) -> None:
    kept = (
        f"the weights of epoch {result.best_epoch} are kept"
        if result.best_epoch
        else "no epoch was better than the weights it began with, which are kept"
        if result.n_epochs
        else "no epoch was completed: the weights are those it began with"
    )
    why = "losses that are not finite, or a likelihood that collapsed"
    if result.stopped_by == "divergence":
        message = (
            f"training diverged {recoveries} times ({why}), although the learning rate was halved "
            f"down to {learning_rate:.2g}; {kept}. Try a smaller learning_rate, or "
            "scale='standard'."
        )
    elif recoveries:
        message = (
            f"training diverged {recoveries} time(s) ({why}) and resumed from the last good "
            f"weights with the learning rate halved to {learning_rate:.2g}; {kept}."
        )
    elif result.stopped_by == "interrupt":
        message = f"training was interrupted after {result.n_epochs} epochs; {kept}."
    else:
        return
    warnings.warn(f"{description}: {message}", ConvergenceWarning, stacklevel=3)
