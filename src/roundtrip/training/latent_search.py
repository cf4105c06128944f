"""Choice of the latent dimension by short trials on validation rows."""

import math
from dataclasses import dataclass, replace

from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import Seeds
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood import WIDE_TABLE
from roundtrip.training.objective import FitOptions
from roundtrip.training.result import TrainingResult
from roundtrip.training.run import fit_model

TRIAL_SHARE = 1 / 30
"""Length of each trial relative to the training that follows: 10 % for three candidates."""

SHORTEST_TRIAL_EPOCHS, SHORTEST_TRIAL_SECONDS = 2, 0.5
"""Shorter trials are not informative: the default dimension is used without trials."""

CLEARLY_AHEAD = 0.05
"""Lead over the default, in nats per feature, that another dimension needs to be chosen. Models of
few dimensions learn faster, so for a while they are ahead of models that end above them."""


@dataclass(frozen=True)
class LatentSearch:
    """Result of the trials.

    Attributes
    ----------
    tried : dict of int to float
        Best validation log-likelihood of each latent dimension.
    best, result : RoundtripModel, TrainingResult
        Model and training of the chosen trial. After an interrupt these are the best so far, and
        `result.stopped_by` is "interrupt".
    seconds : float
        Time of all trials.
    """

    tried: dict[int, float]
    best: RoundtripModel
    result: TrainingResult
    seconds: float


def latent_candidates(features: int) -> list[int]:
    """Return half, two thirds and all of the features; with up to 3 features only all of them.

    Wide tables have no candidates, because trials of them take long.

    Examples
    --------
    >>> [latent_candidates(n) for n in (1, 3, 6, 9, 17, 90)]
    [[1], [3], [3, 4, 6], [5, 6, 9], [9, 11, 17], []]
    """
    if features <= 3:
        return [features]
    if features > WIDE_TABLE:
        return []
    return sorted({(features + 1) // 2, round(2 * features / 3), features})


def search_latent_dim(
    options: FitOptions,
    data: FittingData,
    *,
    seeds: Seeds,
    max_time: float | None,
    checkpoint: Checkpoint | None,
) -> LatentSearch | None:
    """Train each candidate dimension briefly and choose one.

    Parameters
    ----------
    options : FitOptions
        Options of the training that follows.
    data : FittingData
        Training and validation rows.
    seeds : Seeds
        Seeds of the random streams.
    max_time : float or None
        Time limit of the whole fit in seconds.
    checkpoint : Checkpoint or None
        File that keeps the state of each trial.

    Returns
    -------
    LatentSearch or None
        None if there is one candidate only, if trials would be too short, or if the objective has
        no posterior.
    """
    assert options.max_epochs != "auto"
    candidates = latent_candidates(data.features)
    epochs = TRIAL_SHARE * options.max_epochs
    seconds = None if max_time is None else TRIAL_SHARE * max_time
    too_short = epochs < SHORTEST_TRIAL_EPOCHS or (seconds or math.inf) < SHORTEST_TRIAL_SECONDS
    # Validation of the adversarial objective is not informative after so short a training.
    if not options.objective.has_posterior or len(candidates) <= 1 or too_short:
        return None
    short = replace(options, max_epochs=round(epochs) if math.isfinite(epochs) else epochs)
    width = TRIAL_SHARE / (1 + len(candidates) * TRIAL_SHARE)  # in the progress of the whole fit
    trials: dict[int, tuple[RoundtripModel, TrainingResult]] = {}
    for latent_dim in candidates:
        trials[latent_dim] = fit_model(
            short,
            data,
            latent_dim=latent_dim,
            seeds=seeds,
            max_time=seconds,
            checkpoint=checkpoint,
            key=f"trial-{latent_dim}",
            description=f"trying {latent_dim} latent dimensions",
            span=(len(trials) * width, (len(trials) + 1) * width),
        )
        if trials[latent_dim][1].stopped_by == "interrupt":
            break
    tried = {
        latent_dim: max(result.history.get("validation_log_likelihood", []), default=-math.inf)
        for latent_dim, (_, result) in trials.items()
    }
    best = max(tried, key=lambda latent_dim: tried[latent_dim])
    default = options.objective.default_latent_dim(data.features)
    if tried[best] - tried.get(default, -math.inf) < CLEARLY_AHEAD * data.features:
        best = default
    model, result = trials[best]
    stopped_by = next(reversed(trials.values()))[1].stopped_by
    return LatentSearch(
        tried,
        model,
        replace(result, stopped_by=stopped_by),
        seconds=sum(result.seconds for _, result in trials.values()),
    )
