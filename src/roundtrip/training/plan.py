"""All stages of a fit: the latent dimension, the training itself, and the prior."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roundtrip.model.core import RoundtripModel
from roundtrip.training import TrainingResult
from roundtrip.training.aggregate import MOST_ROWS as PRIOR_ROWS
from roundtrip.training.aggregate import fit_prior
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.hybrid import fit_hybrid
from roundtrip.training.latent_search import default_latent_dim, search_latent_dim
from roundtrip.training.run import FittingData, fit_model

PRIOR_SHARE = 0.02
"""Of the time, for the prior."""


@dataclass
class FittedModel:
    """What a fit gives.

    Attributes
    ----------
    model, result : the best weights, and how training went.
    latent_dims_tried : validation log-likelihood of each latent dimension that was tried.
    prior_gain : nats that validation rows gained by fitting the prior.
    """

    model: RoundtripModel
    result: TrainingResult
    latent_dims_tried: dict[int, float]
    prior_gain: float


def fit_in_stages(
    settings: Mapping[str, Any],
    data: FittingData,
    *,
    seed: int,
    validation_seed: int,
    max_time: float | None,
    start: RoundtripModel | None,
    checkpoint: Checkpoint | None,
) -> FittedModel:
    """Choose the latent dimension if it is "auto", train, and fit the prior if that is wanted.

    A model to start from, as in a warm start, has its latent dimension already.
    """
    shared: dict[str, Any] = {
        "seed": seed,
        "validation_seed": validation_seed,
        "checkpoint": checkpoint,
    }
    time_left = max_time
    prior_seconds = None if max_time is None else PRIOR_SHARE * max_time
    latent_dim, tried = settings["latent_dim"], {}
    result: TrainingResult | None = None
    if latent_dim == "auto" and start is not None:
        latent_dim = start.latent_dim
    elif latent_dim == "auto":
        latent_dim = default_latent_dim(data.features, settings["objective"])
        if search := search_latent_dim(settings, data, max_time=time_left, **shared):
            start, tried, latent_dim = search.best, search.tried, search.best.latent_dim
            if time_left is not None:
                time_left -= search.seconds
            if search.result.stopped_by == "interrupt":
                result = search.result
    if result is None:
        if time_left is not None and prior_seconds is not None:
            time_left -= prior_seconds
        fit = fit_hybrid if settings["objective"] == "hybrid" else fit_model
        model, result = fit(
            settings, data, latent_dim=int(latent_dim), max_time=time_left, start=start, **shared
        )
    else:
        assert start is not None
        model = start
    gain = 0.0
    if settings["prior"] == "mixture":
        rows = data.as_trained(PRIOR_ROWS, seed)
        model.prior, gain = fit_prior(model, *rows, seed=seed, seconds=prior_seconds)
    return FittedModel(model, result, tried, gain)
