"""How long a small table is trained: cross-validation chooses the number of steps.

A small table is overfitted within seconds, and the best moment to stop differs between tables
of the same size. So a first training at a constant learning rate finds out after how many steps
held-out rows stop improving. A second training, in which the rate falls to zero at about that
moment, gets further than the first, and chooses its best epoch. With few rows a fifth of them is a
poor judge, so several folds are trained and their curves averaged. In the end all rows are trained
on.

The first training is repeated for every variant of the noise (`Noise.variants`), and the best one
is used from then on.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import Noise
from roundtrip.parameters import Seeds
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood_trainer import WARM_UP_STEPS
from roundtrip.training.objective import FitOptions
from roundtrip.training.result import TrainingResult
from roundtrip.training.run import Schedule, fit_model, rows_per_batch

FOLDS = ((150, 5), (300, 3))
"""Number of folds for tables of fewer rows than the first number; others have one."""

MOST_REFIT_ROWS = 5_000
"""Up to this number of rows a table is trained on all of them in the end; the held-out tenth of a
larger one would not make it much better."""

MOST_PASSES, MOST_STEPS = 300, 500
"""Limit of the first training: so many passes over the rows or so many steps, whichever is more."""

FIRST_PATIENCE = 5
"""Fewest epochs without improvement after which the first training ends."""

LARGEST_LOSS = 0.05
"""Nats per feature by which a training on all rows may be behind that of a fold."""

SECOND_LENGTH = 1.25
"""Steps of the second training, besides its warm-up, in units of those that the first one found."""

SECOND_EPOCHS = 40
"""Validations in the second training."""

SECOND_PATIENCE = 15
"""Epochs without improvement after which a second training of one fold ends. Those of several folds
run to their end, so that their curves can be averaged."""


@dataclass(frozen=True)
class FoldFits:
    """Trainings with one schedule, one per fold.

    Attributes
    ----------
    schedule, noise : Schedule, Noise
        Their schedule and noise.
    models, results : list of RoundtripModel, list of TrainingResult
        Best model and course of training of each fold.
    """

    schedule: Schedule
    noise: Noise
    models: list[RoundtripModel]
    results: list[TrainingResult]

    @property
    def scores(self) -> list[float]:
        """Validation log-likelihood before the first step and after each epoch, mean over folds."""
        curves = [
            [result.first_score, *result.history.get("validation_log_likelihood", [])]
            for result in self.results
        ]
        return np.mean([curve[: min(map(len, curves))] for curve in curves], axis=0).tolist()

    @property
    def best_epoch(self) -> int:
        """Epoch with the highest score; 0 is the model before training."""
        return int(np.argmax(self.scores))

    def stopped_by(self, reason: str) -> bool:
        """Return whether a training was stopped by `reason`."""
        return any(result.stopped_by == reason for result in self.results)


class LengthSearch:
    """Trainings that choose the number of steps, and the training on all rows that follows.

    Parameters
    ----------
    options : FitOptions
        Components and numbers of the fit.
    data : FittingData
        Training and validation rows.
    latent_dim : int
        Dimension of z.
    seeds : Seeds
        Seeds of the random streams.
    max_time : float or None
        Time limit of everything.
    checkpoint : Checkpoint or None
        File that keeps the state of each training.
    """

    def __init__(
        self,
        options: FitOptions,
        data: FittingData,
        *,
        latent_dim: int,
        seeds: Seeds,
        max_time: float | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.options = options
        self.data = data
        self.splits = data.folds(1 if data.own_validation else number_of_folds(data.n_rows))
        self._uses_all_rows = not data.own_validation and data.n_rows <= MOST_REFIT_ROWS
        self._time_left = max_time
        variants = len(options.noise.variants)
        self._trainings = len(self.splits) * (variants + 1) + self._uses_all_rows
        self._ended = 0
        self._shared: dict[str, Any] = {
            "latent_dim": latent_dim,
            "seeds": seeds,
            "checkpoint": checkpoint,
        }

    def run(self) -> tuple[RoundtripModel, TrainingResult, FoldFits]:
        """Return the trained model, the course of its training, and the trainings of the folds."""
        chosen = self._chosen()
        if self._uses_all_rows and not (
            chosen.stopped_by("interrupt") or chosen.stopped_by("max_time")
        ):
            for key in ("all-rows", "all-rows-again"):
                model, result = self._fit_all_rows(chosen, key)
                self._spend(result.seconds)
                if result.stopped_by != "validation":
                    # Cut short, it is behind the model of the first fold.
                    chosen.results[0] = replace(chosen.results[0], stopped_by=result.stopped_by)
                    break
                if self._has_learnt(model, chosen):
                    return model, result, chosen
        return chosen.models[0], chosen.results[0], chosen

    def _chosen(self) -> FoldFits:
        """Return the trainings of the chosen length, whose best epoch is the one to stop at."""
        first = self._first()
        self.options = replace(self.options, noise=first.noise)
        if first.stopped_by("interrupt"):
            return first
        per_epoch = first.schedule.steps_per_epoch
        if first.stopped_by("max_time"):  # no time to start again: the rate falls from here on
            self._uses_all_rows = False
            return self._fit(
                Schedule(per_epoch, math.inf, math.inf),
                self._stage(2),
                start=first.models[0],
            )
        if first.best_epoch == 0:
            return first
        steps = SECOND_LENGTH * first.best_epoch * per_epoch + WARM_UP_STEPS
        per_epoch = max(1, round(steps / SECOND_EPOCHS))
        epochs = max(1, round(steps / per_epoch))
        patience = SECOND_PATIENCE if len(self.splits) == 1 else epochs
        second = self._fit(Schedule(per_epoch, epochs, patience), self._stage(2))
        if max(second.scores) >= max(first.scores):
            return second
        if second.stopped_by("interrupt"):
            first.results[0] = replace(first.results[0], stopped_by="interrupt")
        return first

    def _first(self) -> FoldFits:
        """Return the first trainings, at a constant rate, with the best variant of the noise."""
        rows = len(self.splits[0].training)
        per_pass = rows // rows_per_batch(self.options.objective, rows)
        per_epoch = max(int(self.options.objective.min_steps_per_epoch), per_pass)
        most = max(MOST_STEPS, MOST_PASSES * per_pass) // per_epoch
        schedule = Schedule(per_epoch, max(1, most), FIRST_PATIENCE, falling_rate=False)
        best: FoldFits | None = None
        variants = self.options.noise.variants
        for number, noise in enumerate(variants):
            self.options = replace(self.options, noise=noise)
            text = self._stage(1)
            text += f", noise {number + 1}/{len(variants)}" * (len(variants) > 1)
            fits = self._fit(
                schedule,
                text,
                key=f"first-{number}",
                later=len(variants) - number,
            )
            interrupted = fits.stopped_by("interrupt")
            if best is None or (max(fits.scores) > max(best.scores) and not interrupted):
                best = fits
            elif interrupted:
                best.results[0] = replace(best.results[0], stopped_by="interrupt")
            if interrupted or fits.stopped_by("max_time"):
                break
        assert best is not None
        return best

    def _has_learnt(self, model: RoundtripModel, chosen: FoldFits) -> bool:
        """Return whether the training on all rows went as well as that of the first fold.

        No rows are left to validate it by, and some trainings go wrong at a late step. The rows
        that the fold has held out must be likelier in a model that was trained on them.
        """
        fold, seed = self.splits[0], self._shared["seeds"]["validation"]
        ours, of_fold = (
            self.options.objective.validator(each, fold, self.options, seed)(0)
            for each in (model, chosen.models[0])
        )
        return ours > of_fold - LARGEST_LOSS * fold.features

    def _fit_all_rows(self, chosen: FoldFits, key: str) -> tuple[RoundtripModel, TrainingResult]:
        """Train on all rows, with the chosen schedule, up to its best epoch."""
        data = self.data.all_rows
        # As many passes: more rows than in a fold take more steps.
        more = len(data.training) / len(self.splits[0].training)
        batch = int(self.options.objective.batch_size)
        more = max(1.0, more if len(data.training) > batch else 1.0)
        schedule = replace(
            chosen.schedule,
            steps_per_epoch=max(1, round(more * chosen.schedule.steps_per_epoch)),
            patience=math.inf,
            scores=chosen.scores[: chosen.best_epoch + 1],
        )
        return fit_model(
            self.options,
            data,
            max_time=self._time_left,
            key=key,
            description=self._stage(3),
            span=((self._trainings - 1) / self._trainings, 1.0),
            schedule=schedule,
            **self._shared,
        )

    def _spend(self, seconds: float) -> None:
        if self._time_left is not None:
            self._time_left = max(self._time_left - seconds, 1e-3)

    def _next_span(self) -> tuple[float, float]:
        """Return where the next training starts and ends in the progress of the whole fit."""
        self._ended += 1
        return (self._ended - 1) / self._trainings, self._ended / self._trainings

    def _stage(self, number: int) -> str:
        """Return the text for the progress bar, which must fit into 80 columns."""
        return f"stage {number}/{2 + self._uses_all_rows}"

    def _fit(
        self,
        schedule: Schedule,
        description: str,
        *,
        key: str = "second",
        later: int = 0,
        start: RoundtripModel | None = None,
    ) -> FoldFits:
        """Train every fold, or only the first one from the weights of `start`.

        `later` is the number of trainings of all folds that are still to come.
        """
        fits = FoldFits(schedule, self.options.noise, [], [])
        splits = self.splits if start is None else self.splits[:1]
        count = len(splits)
        # Time for the folds of this and of later trainings, and for all rows.
        shares = count * (1 + later) + self._uses_all_rows
        for number, split in enumerate(splits):
            seconds = self._time_left
            model, result = fit_model(
                self.options,
                split,
                max_time=None if seconds is None else max(seconds / (shares - number), 1e-3),
                key=f"{key}/fold-{number}",
                description=description + f", fold {number + 1}/{count}" * (count > 1),
                span=self._next_span(),
                schedule=schedule,
                start=start,
                **self._shared,
            )
            fits.models.append(model)
            fits.results.append(result)
            self._spend(result.seconds)
            if result.stopped_by == "interrupt":
                break
        return fits


def number_of_folds(rows: int) -> int:
    """Return the number of folds for a table.

    Examples
    --------
    >>> [number_of_folds(rows) for rows in (3, 100, 200, 5000)]
    [3, 5, 3, 1]
    """
    return min(rows, next((folds for limit, folds in FOLDS if rows < limit), 1))
