"""Maximum-likelihood training of normalizing flows, with early stopping and a time limit."""

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
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from roundtrip.baselines.budget import Budget
from roundtrip.data import Rows
from roundtrip.density.blocks import map_blocks
from roundtrip.io.progress import TrainingProgress
from roundtrip.training.batches import Batches

MAX_RECOVERIES = 3
MAX_GRADIENT_NORM = 5.0
MIN_STEPS_PER_EPOCH = 20
"""Keeps small tables from being validated after every few steps."""

ROWS_PER_CALL = 1024


@dataclass
class FlowTraining:
    """The record of a training run.

    Attributes
    ----------
    history : dict of lists
        "validation_log_likelihood", "learning_rate" and "seconds" (since the start of the budget),
        with one entry per epoch; the last epoch may be incomplete.
    best_epoch : int
        The epoch, counted from 1, whose weights were kept; 0 for the initial weights.
    best_score : float
        Mean validation log-likelihood of that epoch.
    stopped_by : str
        "max_epochs", "max_time", "patience" or "divergence".
    """

    history: dict[str, list[float]] = field(
        default_factory=lambda: {
            "validation_log_likelihood": [],
            "learning_rate": [],
            "seconds": [],
        }
    )
    best_epoch: int = 0
    best_score: float = -math.inf
    stopped_by: str = "max_epochs"

    @property
    def n_epochs(self) -> int:
        """Number of validated epochs."""
        return len(self.history["seconds"])


class _DivergedError(Exception):
    """A loss or validation score is not a finite number."""


def flow_log_density(flow: nn.Module, x: Tensor) -> Tensor:
    """Return the log density of rows under a zuko flow with a standard normal base.

    The network computes in its own precision; sums are in float64.

    Parameters
    ----------
    flow : torch.nn.Module
        The flow.
    x : Tensor
        `(rows, features)`.

    Returns
    -------
    Tensor
        `(rows,)` float64.
    """
    z, log_det = flow().transform.call_and_ladj(x)
    return log_det.double() - 0.5 * (z.double().square() + math.log(2 * math.pi)).sum(dim=1)


def train_flow(
    flow: nn.Module,
    training: Tensor,
    validation: Tensor,
    *,
    learning_rate: float,
    batch_size: int,
    max_epochs: int,
    patience: int,
    averaging: float,
    budget: Budget,
    rng: torch.Generator,
    log_det: float = 0.0,
    verbose: bool = False,
) -> FlowTraining:
    """Train a flow by Adam; at the end `flow` has the weights of the best epoch.

    If a loss or score is not finite, training returns to the best weights and halves the learning
    rate, at most three times.

    Parameters
    ----------
    flow : torch.nn.Module
        The flow, changed in place.
    training : Tensor
        `(rows, features)` training rows.
    validation : Tensor
        `(rows, features)` validation rows.
    learning_rate : float
        Initial learning rate. It falls to 0 along a cosine while the time or the epochs are used
        up, whichever happens faster.
    batch_size : int
        Rows per step.
    max_epochs : int
        Largest number of epochs.
    patience : int
        Epochs without a better validation log-likelihood after which training stops.
    averaging : float
        Decay of the running average of the weights that is validated and kept; 0 keeps the weights
        themselves.
    budget : Budget
        Time limit, including validation.
    rng : torch.Generator
        Random generator that shuffles the rows.
    log_det : float, default=0.0
        Added to log-likelihoods to convert them to the user's units.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    FlowTraining
        The record of the training run.
    """
    steps = max(MIN_STEPS_PER_EPOCH, math.ceil(len(training) / batch_size))
    stream = Batches(Rows.without_context(training), batch_size, sampling="shuffle", rng=rng)
    result = FlowTraining()
    trainer = _Trainer(flow, learning_rate, averaging)
    best = copy.deepcopy(flow.state_dict())
    recoveries = 0
    start = time.perf_counter()
    _mean_log_density(flow, validation[:ROWS_PER_CALL])
    # The time limit includes validation. This first estimate of its duration is replaced by a
    # measurement after the first epoch.
    validation_seconds = (time.perf_counter() - start) * math.ceil(len(validation) / ROWS_PER_CALL)
    with TrainingProgress("fitting", enabled=verbose) as progress:
        while result.n_epochs < max_epochs:
            try:
                in_time = trainer.epoch(
                    stream,
                    steps,
                    done=result.n_epochs / max_epochs,
                    share=1 / max_epochs,
                    budget=budget,
                    reserve=validation_seconds,
                    on_step=progress.step,
                )
                start = time.perf_counter()
                score = _mean_log_density(trainer.averaged, validation) + log_det
                validation_seconds = time.perf_counter() - start
                if not math.isfinite(score):
                    raise _DivergedError
            except _DivergedError:
                recoveries += 1
                flow.load_state_dict(best)
                learning_rate /= 2
                trainer = _Trainer(flow, learning_rate, averaging)
                if recoveries > MAX_RECOVERIES or budget.spent:
                    result.stopped_by = "divergence"
                    break
                continue
            progress.epoch(result.n_epochs + 1, {"validation_log_likelihood": score})
            result.history["validation_log_likelihood"].append(score)
            result.history["learning_rate"].append(trainer.learning_rate)
            result.history["seconds"].append(budget.elapsed)
            if score > result.best_score:
                result.best_score, result.best_epoch = score, result.n_epochs
                best = copy.deepcopy(trainer.averaged.state_dict())
            elif result.n_epochs - result.best_epoch >= patience:
                result.stopped_by = "patience"
                break
            if not in_time:
                result.stopped_by = "max_time"
                break
    flow.load_state_dict(best)
    if not result.best_epoch:
        result.best_score = _mean_log_density(flow, validation) + log_det
    _warn(result, recoveries, learning_rate)
    return result


class _Trainer:
    """Adam for the weights of `flow`, and their running average."""

    def __init__(self, flow: nn.Module, learning_rate: float, averaging: float) -> None:
        self.flow = flow
        self.peak = learning_rate
        self.optimizer = torch.optim.Adam(flow.parameters(), lr=learning_rate, fused=True)
        self._average = (
            AveragedModel(flow, multi_avg_fn=_forgetting_average(averaging)) if averaging else None
        )

    @property
    def averaged(self) -> nn.Module:
        """The flow to validate and keep."""
        return self._average.module if self._average else self.flow

    @property
    def learning_rate(self) -> float:
        """Learning rate of the latest step."""
        return self.optimizer.param_groups[0]["lr"]

    def epoch(
        self,
        stream: Iterator[Rows],
        steps: int,
        *,
        done: float,
        share: float,
        budget: Budget,
        reserve: float,
        on_step: Callable[[float, int], None],
    ) -> bool:
        """Run up to `steps` updates.

        Parameters
        ----------
        stream : iterator of Rows
            Batches.
        steps : int
            Updates of a complete epoch.
        done : float
            Share of all epochs that is finished.
        share : float
            Share of this epoch in all epochs.
        budget : Budget
            Time limit.
        reserve : float
            Seconds to leave for validation.
        on_step : callable
            Called after each step with the finished share of training and the rows of the step.

        Returns
        -------
        bool
            False if the time limit ended the epoch.
        """
        for step in range(steps):
            spent = min(max(budget.fraction, done + share * step / steps), 1.0)
            batch = next(stream)
            self._step(batch.x, self.peak * 0.5 * (1 + math.cos(math.pi * spent)))
            on_step(spent, len(batch))
            if budget.left <= reserve:
                return False
        return True

    def _step(self, x: Tensor, learning_rate: float) -> None:
        self.optimizer.param_groups[0]["lr"] = learning_rate
        self.optimizer.zero_grad()
        loss = -flow_log_density(self.flow, x).mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.flow.parameters(), MAX_GRADIENT_NORM)
        if not math.isfinite(loss.item()):
            raise _DivergedError  # before the update, so the weights are still finite
        if not math.isfinite(norm.item()):
            return  # an outlier made the gradient overflow float32: skip this batch
        self.optimizer.step()
        if self._average:
            self._average.update_parameters(self.flow)


def _forgetting_average(decay: float) -> Callable[..., None]:
    """Return an update of a running average that forgets the initial weights faster."""

    def update(averaged: Any, current: Any, count: Tensor | int) -> None:
        early = (1 + float(count)) / (10 + float(count))
        get_ema_multi_avg_fn(min(decay, early))(averaged, current, count)

    return update


@torch.no_grad()
def _mean_log_density(flow: nn.Module, x: Tensor) -> float:
    return map_blocks(lambda rows: flow_log_density(flow, rows), x, ROWS_PER_CALL).mean().item()


def _warn(result: FlowTraining, recoveries: int, learning_rate: float) -> None:
    if not recoveries:
        return
    end = "and was given up" if result.stopped_by == "divergence" else "and recovered"
    kept = (
        f"the weights of epoch {result.best_epoch} are kept"
        if result.best_epoch
        else "no epoch was completed: the flow is untrained"
    )
    warnings.warn(
        f"training diverged {recoveries} time(s) (NaN or infinite likelihoods) {end}, the learning "
        f"rate halved to {learning_rate:.2g}; {kept}.",
        ConvergenceWarning,
        stacklevel=2,
    )
