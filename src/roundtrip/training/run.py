"""One training of a model, from options and scaled rows to the best weights."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from roundtrip.data import Schema
from roundtrip.io.model_file import check_finite, is_ours
from roundtrip.model.build import build_model
from roundtrip.model.core import RoundtripModel
from roundtrip.model.inputs import RowInputs
from roundtrip.model.networks import Sizes
from roundtrip.parameters import Seeds, check_integer, is_sequence
from roundtrip.training.batches import Batches
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.data import FittingData, columns_of
from roundtrip.training.loop import train
from roundtrip.training.objective import FitOptions, Objective, TrainingStreams, Validator
from roundtrip.training.principal import has_linear_start, start_at_principal_components
from roundtrip.training.result import TrainingResult
from roundtrip.training.validators import CrossValidated

FIRST_WIDTH = 1.0
"""Of the noise, in scaled units, around networks that do not start as principal components."""

STEADY_STEPS, STEADY_ROWS = 10, 2_560
"""The mean bound of an epoch of fewer steps varies too much to tell that training has collapsed.
That of fewer rows, counted with repetitions, varies more, so that only a larger fall is one."""

SMALLEST_BATCH = 2
"""Batch norm needs two rows to estimate a variance."""


@dataclass(frozen=True)
class Schedule:
    """Length of a training.

    Attributes
    ----------
    steps_per_epoch : int
        Updates between two validations.
    epochs : float
        Epochs over which the learning rate falls to zero; may be infinite.
    patience : float
        Epochs without improvement after which training stops.
    falling_rate : bool
        Whether the learning rate falls; otherwise it stays at its highest value.
    scores : sequence of float or None
        Cross-validated scores from epoch 0 on, if training takes all rows. It then ends after the
        last of them.
    """

    steps_per_epoch: int
    epochs: float
    patience: float
    falling_rate: bool = True
    scores: Sequence[float] | None = None


def fit_model(
    options: FitOptions,
    data: FittingData,
    *,
    latent_dim: int,
    seeds: Seeds,
    max_time: float | None = None,
    start: RoundtripModel | None = None,
    checkpoint: Checkpoint | None = None,
    key: str = "training",
    description: str = "fitting",
    span: tuple[float, float] = (0.0, 1.0),
    schedule: Schedule | None = None,
) -> tuple[RoundtripModel, TrainingResult]:
    """Build and train a model.

    Parameters
    ----------
    options : FitOptions
        Components and numbers of the training.
    data : FittingData
        Training and validation rows.
    latent_dim : int
        Dimension of z.
    seeds : Seeds
        Seeds of the random streams.
    max_time : float, default=None
        Time limit in seconds.
    start : RoundtripModel, default=None
        Model whose weights training starts from, instead of new weights.
    checkpoint : Checkpoint, default=None
        File to resume from and to keep the state in.
    key : str, default="training"
        Name of this training in the checkpoint.
    description : str, default="fitting"
        Name of this training in the progress bar and in warnings.
    span : tuple of float, default=(0.0, 1.0)
        Where this training starts and ends in the progress of the whole fit.
    schedule : Schedule, default=None
        Length of the training. By default it follows from the options.

    Returns
    -------
    model : RoundtripModel
        The model with the best weights.
    result : TrainingResult
        The course of training.
    """
    device, objective = data.training.device, options.objective
    streams = TrainingStreams(
        weights=torch.Generator().manual_seed(seeds[f"{key}/weights"]),
        training=torch.Generator(device).manual_seed(seeds[f"{key}/training"]),
        validation=seeds["validation"],
    )
    model = build_model(
        data.sizes(latent_dim),
        network=options.network,
        noise=options.noise,
        prior=options.prior,
        has_posterior=objective.has_posterior,
        floor=data.noise_floor.cpu() if objective.learns_noise else None,
        rng=streams.weights,
    ).to(device)
    if isinstance(model.inputs, RowInputs):
        model.inputs.learn_patterns(data.training.x)
    if start is not None:
        _take_weights(model, start)
    elif has_linear_start(model):
        start_at_principal_components(model, data.spread(data.training, streams.training))
    else:
        model.noise.start(data.spread(data.training, streams.training).x, FIRST_WIDTH)
    _check_start(model)
    trainer = objective.trainer(model, data, options.network, streams)
    training = data.training.to(torch.float32)
    # Rows that repeat within a batch cost time and add nothing; the paper's sampling repeats rows.
    batch_size = rows_per_batch(objective, len(training))
    if schedule is None:
        steps = max(int(objective.min_steps_per_epoch), len(training) // batch_size)
        assert options.max_epochs != "auto"
        schedule = Schedule(steps, options.max_epochs, options.validation.patience)
    stream = Batches(
        training,
        batch_size,
        sampling=objective.sampling,
        rng=streams.training,
        jitter=None if data.steps is None else data.steps.float(),
    )
    validator: Validator = (
        objective.validator(trainer.kept, data, options, streams.validation)
        if schedule.scores is None
        else CrossValidated(schedule.scores)
    )
    result = train(
        trainer,
        stream,
        validator,
        steps_per_epoch=schedule.steps_per_epoch,
        max_epochs=schedule.epochs,
        patience=schedule.patience,
        falling_rate=schedule.falling_rate,
        last_epoch=None if schedule.scores is None else len(schedule.scores) - 1,
        max_time=max_time,
        largest_fall=objective.largest_fall * data.features * _unsteadiness(schedule, batch_size),
        checkpoint=checkpoint,
        key=key,
        description=description,
        span=span,
        unit="rows" if data.image_shape is None else "images",
        verbose=options.verbose,
    )
    # A copy has its own tensors, without gradients and flat buffers of training.
    return copy.deepcopy(trainer.kept), result


def _check_start(model: RoundtripModel) -> None:
    """Raise `ValueError` if the weights of the start are not finite: training returns to these."""
    bad = [name for name, part in model.named_parameters() if not bool(part.isfinite().all())]
    if bad:
        raise ValueError(
            f"training can't start, because {bad[0]} is not finite for these rows; rescale the "
            "columns, or use scale='standard'"
        )


def _unsteadiness(schedule: Schedule, batch_size: int) -> float:
    """Return by how much more than usual the bound of an epoch may fall."""
    if schedule.steps_per_epoch < STEADY_STEPS:
        return math.inf
    return max(1.0, math.sqrt(STEADY_ROWS / (schedule.steps_per_epoch * batch_size)))


def rows_per_batch(objective: Objective, rows: int) -> int:
    """Return the batch size: no larger than the table, unless rows are drawn with replacement."""
    size = int(objective.batch_size)
    return max(SMALLEST_BATCH, min(size, rows)) if objective.sampling == "shuffle" else size


def restored_model(
    options: FitOptions, schema: Schema, latent_dim: int, state: dict[str, Tensor]
) -> RoundtripModel:
    """Rebuild a trained model from its state dict, on the CPU; refuse one that no fit gives."""
    check_finite("model", state)
    _check_sizes(options, latent_dim, state)
    shape = None if schema.images is None else schema.images.shape
    model = build_model(
        Sizes(schema.features, latent_dim, schema.context_dim, shape, columns_of(schema)),
        network=options.network,
        noise=options.noise,
        prior=options.prior,
        has_posterior=options.objective.has_posterior,
        rng=torch.Generator(),
    )
    of_prior = {name: state[name] for name in state if name.startswith("prior.")}
    model.prior = options.prior.restored(
        latent_dim, {name.removeprefix("prior."): part for name, part in of_prior.items()}
    )
    model.load_state_dict(state)
    return model.eval()


def _check_sizes(options: FitOptions, latent_dim: int, state: dict[str, Tensor]) -> None:
    """Raise `ValueError` for networks larger than their weights, before they are built."""
    check_integer("latent_dim", latent_dim, minimum=1)
    largest = max([len(state), *(side for part in state.values() for side in part.shape)])
    sizes: dict[str, Any] = {"latent_dim": latent_dim}
    for component in (options.network, options.noise):
        if is_ours(type(component)):
            sizes |= component.get_params()
    for name, value in sizes.items():
        for size in value if is_sequence(value) else [value]:
            if isinstance(size, int) and size > largest:
                raise ValueError(f"{name} is {size}, but no weight of the file is so large")


def _take_weights(model: RoundtripModel, start: RoundtripModel) -> None:
    """Load the weights of an earlier model.

    What is not trained, as a fixed sigma or the floor of the noise, follows from the present
    settings and rows; what was fitted after training, a prior and the calibration of the noise, is
    left out.
    """
    own = model.state_dict()
    fixed = {name for name, weights in model.named_parameters() if not weights.requires_grad}
    parts = ("floor", "widening", "sharpness", "patterns")
    fixed |= {name for name in own if name.endswith(parts)}
    state = {name: own[name] for name in fixed if name in own}
    for name, weights in start.state_dict().items():
        if name not in state and (name in own or not name.startswith("prior.")):
            state[name] = weights
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(
            "the earlier fit has networks of another shape; set warm_start=False, or the "
            "latent_dim, objective, noise, network and prior of that fit"
        ) from error
