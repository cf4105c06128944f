"""The stages of a fit: latent dimension, training, calibration of the noise, fitted prior."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import Noise
from roundtrip.model.prior import MixturePrior
from roundtrip.parameters import Seeds
from roundtrip.training.calibration import calibrate
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.data import FittingData
from roundtrip.training.fitted_prior import MOST_ROWS as PRIOR_ROWS
from roundtrip.training.fitted_prior import fit_prior
from roundtrip.training.hybrid import Hybrid
from roundtrip.training.latent_search import TRIAL_SHARE, search_latent_dim
from roundtrip.training.length_search import LengthSearch
from roundtrip.training.linear_mixture import fit_linear_mixture
from roundtrip.training.objective import FitOptions
from roundtrip.training.result import TrainingResult
from roundtrip.training.run import fit_model
from roundtrip.training.size import check_size

PRIOR_SHARE = 0.02
"""Share of the time limit that is reserved for fitting the prior."""

ROWS_PER_DIMENSION = 4
"""Fewest rows per latent dimension that "auto" gives."""

LINEAR_MARGIN = 0.03
"""Nats per feature by which a linear model must be ahead of the trained one to replace it."""

WARM_START_EPOCHS = 60
"""Epochs of a warm start on a small table without a time limit."""


@dataclass
class FittedModel:
    """Result of a fit.

    Attributes
    ----------
    model, result : RoundtripModel, TrainingResult
        The model with the best weights, and the course of its training.
    noise : Noise
        Settings of its noise.
    latent_dims_tried : dict of int to float
        Validation log-likelihood of each latent dimension that was tried.
    prior_gain : float
        Nats per validation row gained by the fitted prior.
    trained : bool, default=True
        Whether the networks were trained; otherwise they are linear (`linear_mixture.py`).
    """

    model: RoundtripModel
    result: TrainingResult
    noise: Noise
    latent_dims_tried: dict[int, float]
    prior_gain: float
    trained: bool = True


def fit_in_stages(
    options: FitOptions,
    data: FittingData,
    *,
    seeds: Seeds,
    max_time: float | None,
    start: RoundtripModel | None,
    checkpoint: Checkpoint | None,
) -> FittedModel:
    """Choose the latent dimension if it is "auto", train, and fit the prior if it is a mixture.

    Parameters
    ----------
    options : FitOptions
        Components and numbers of the fit.
    data : FittingData
        Training and validation rows.
    seeds : Seeds
        Seeds of the random streams.
    max_time : float or None
        Time limit in seconds.
    start : RoundtripModel or None
        Model of a warm start. Its latent dimension replaces "auto".
    checkpoint : Checkpoint or None
        File to resume from and to keep the state in.

    Returns
    -------
    FittedModel
        The model and the course of the fit.
    """
    planned = options.latent_dim if start is None else start.latent_dim
    if planned == "auto":
        planned = options.objective.default_latent_dim(data.features)
    check_size(options, data, int(planned))
    if options.max_epochs == "auto" and start is not None:
        options = replace(options, max_epochs=math.inf if max_time else WARM_START_EPOCHS)
    if options.max_epochs == "auto":
        return _fit_small_table(
            options, data, seeds=seeds, max_time=max_time, checkpoint=checkpoint
        )
    shared: dict[str, Any] = {"seeds": seeds, "checkpoint": checkpoint}
    time_left = max_time
    prior_seconds = None if max_time is None else PRIOR_SHARE * max_time
    latent_dim, tried = options.latent_dim, {}
    result: TrainingResult | None = None
    if latent_dim == "auto" and start is not None:
        latent_dim = start.latent_dim
    elif latent_dim == "auto":
        latent_dim = options.objective.default_latent_dim(data.features)
        main = replace(options, objective=_main_stage(options))
        if search := search_latent_dim(main, data, max_time=time_left, **shared):
            start, tried, latent_dim = search.best, search.tried, search.best.latent_dim
            if time_left is not None:
                time_left -= search.seconds
            if search.result.stopped_by == "interrupt":
                result = search.result
    if result is None:
        if time_left is not None and prior_seconds is not None:
            time_left -= prior_seconds
        fit = _fit_hybrid if isinstance(options.objective, Hybrid) else fit_model
        trials = TRIAL_SHARE * len(tried)
        model, result = fit(
            options,
            data,
            latent_dim=int(latent_dim),
            max_time=time_left,
            start=start,
            span=(trials / (1 + trials), 1.0),
            **shared,
        )
    else:
        assert start is not None
        model = start
    _calibrate(options, data, model, result, [model], [data], seeds)
    gain = 0.0
    if isinstance(options.prior, MixturePrior):
        rows = data.as_trained(PRIOR_ROWS, seeds["prior"])
        fitted, gain = fit_prior(
            model,
            *rows,
            most_components=options.prior.components,
            seed=seeds["prior"],
            seconds=prior_seconds,
        )
        model.prior = options.prior.build(model.latent_dim) if fitted is None else fitted
    return FittedModel(model, result, options.noise, tried, gain)


def _fit_small_table(
    options: FitOptions,
    data: FittingData,
    *,
    seeds: Seeds,
    max_time: float | None,
    checkpoint: Checkpoint | None,
) -> FittedModel:
    """Choose the length of training by trials, train on all rows, calibrate and fit the prior."""
    start = time.perf_counter()
    latent_dim = options.latent_dim
    if latent_dim == "auto":
        # More dimensions than this can't be told from noise.
        most = max(1, data.n_rows // ROWS_PER_DIMENSION)
        latent_dim = min(most, options.objective.default_latent_dim(data.features))
    prior_seconds = None if max_time is None else PRIOR_SHARE * max_time
    limit = None if max_time is None else max_time * (1 - PRIOR_SHARE)
    search = LengthSearch(
        options,
        data,
        latent_dim=int(latent_dim),
        seeds=seeds,
        max_time=limit,
        checkpoint=checkpoint,
    )
    model, result, chosen = search.run()
    all_rows = model is not chosen.models[0]
    _calibrate(options, data, model, result, chosen.models, search.splits, seeds)
    gain = 0.0
    if isinstance(options.prior, MixturePrior):
        settings: dict[str, Any] = {
            "most_components": options.prior.components,
            "seed": seeds["prior"],
            "seconds": prior_seconds,
        }
        fits = [
            fit_prior(fitted, *fold.as_trained(PRIOR_ROWS, seeds["prior"]), **settings)
            for fitted, fold in zip(chosen.models, search.splits, strict=False)
        ]
        gain = sum(each for _, each in fits) / len(fits)
        prior = fits[0][0]
        if gain > 0 and all_rows:
            rows, _ = data.all_rows.as_trained(PRIOR_ROWS, seeds["prior"])
            prior, _ = fit_prior(model, rows, None, **settings)
        if gain > 0 and prior is not None:
            model.prior = prior
        else:
            model.prior, gain = options.prior.build(model.latent_dim), 0.0
    fitted = FittedModel(model, result, search.options.noise, {}, gain)
    interrupted = result.stopped_by == "interrupt" or chosen.stopped_by("interrupt")
    if options.latent_dim == "auto" and not interrupted:
        # The same folds for both: one of them may be harder than others.
        splits = search.splits[: len(chosen.models)]
        left = None if max_time is None else max_time - (time.perf_counter() - start)
        linear = fit_linear_mixture(options, data, splits, seeds=seeds, seconds=left)
        ahead = max(chosen.scores) + gain + LINEAR_MARGIN * data.features
        if linear is not None and linear.score > ahead:
            result = replace(result, best_epoch=0, first_score=linear.score)
            fitted = FittedModel(linear.model, result, linear.noise, {}, 0.0, trained=False)
    return fitted


def _calibrate(
    options: FitOptions,
    data: FittingData,
    model: RoundtripModel,
    result: TrainingResult,
    fold_models: Sequence[RoundtripModel],
    folds: Sequence[FittingData],
    seeds: Seeds,
) -> None:
    """Calibrate the noise of a conditional model, unless the user wants to stop."""
    draws = options.validation.draws
    if data.training.context_dim and model.has_posterior and result.stopped_by != "interrupt":
        assert draws != "auto"
        calibrate(model, fold_models, folds, draws=draws, seed=seeds["validation"])


def _main_stage(options: FitOptions) -> Any:
    """Return the objective of the trials: for "hybrid" that of the second stage."""
    objective = options.objective
    return objective.second_stage if isinstance(objective, Hybrid) else objective


def _fit_hybrid(
    options: FitOptions,
    data: FittingData,
    *,
    latent_dim: int,
    seeds: Seeds,
    max_time: float | None = None,
    start: RoundtripModel | None = None,
    checkpoint: Checkpoint | None = None,
    span: tuple[float, float] = (0.0, 1.0),
) -> tuple[RoundtripModel, TrainingResult]:
    """Train by eq. (13)-(15) with a small weight of the bound, then by the bound alone."""
    objective = options.objective
    assert isinstance(objective, Hybrid)
    assert options.max_epochs != "auto"
    epochs, share = options.max_epochs, objective.first_share
    first_epochs = min(round(share * epochs), epochs - 1) if math.isfinite(epochs) else epochs
    shared: dict[str, Any] = {"latent_dim": latent_dim, "seeds": seeds, "checkpoint": checkpoint}
    first = TrainingResult()
    between = span[0] + share * (span[1] - span[0])
    if first_epochs > 0:
        start, first = fit_model(
            replace(options, objective=objective.first_stage, max_epochs=first_epochs),
            data,
            max_time=None if max_time is None else share * max_time,
            start=start,
            key="adversarial-stage",
            description="fitting, adversarial losses first",
            span=(span[0], between),
            **shared,
        )
        if first.stopped_by == "interrupt":
            return start, first
    model, second = fit_model(
        replace(options, objective=objective.second_stage, max_epochs=epochs - first.n_epochs),
        data,
        max_time=None if max_time is None else max_time - first.seconds,
        start=start,
        key="likelihood-stage",
        description="fitting, likelihood after",
        span=(between, span[1]),
        **shared,
    )
    return model, first.followed_by(second)
