"""One training of a model, from options and scaled rows to the best weights."""

import copy

import torch
from torch import Tensor

from roundtrip.data import Schema
from roundtrip.model.build import build_model
from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Sizes
from roundtrip.parameters import Seeds
from roundtrip.training.batches import Batches
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.data import FittingData
from roundtrip.training.loop import TrainingResult, train
from roundtrip.training.objective import FitOptions, TrainingStreams
from roundtrip.training.principal import has_linear_start, start_at_principal_components

FIRST_WIDTH = 1.0
"""Of the noise, in scaled units, around networks that do not start as principal components."""

SMALLEST_BATCH = 2
"""Batch norm needs two rows to estimate a variance."""


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
    if start is not None:
        _take_weights(model, start)
    elif has_linear_start(model):
        start_at_principal_components(model, data.spread(data.training, streams.training))
    else:
        model.noise.start(data.spread(data.training, streams.training).x, FIRST_WIDTH)
    trainer = objective.trainer(model, data, options.network, streams)
    training = data.training.to(torch.float32)
    # Rows that repeat within a batch cost time and add nothing; the paper's sampling repeats rows.
    batch_size = int(objective.batch_size)
    if objective.sampling == "shuffle":
        batch_size = max(SMALLEST_BATCH, min(batch_size, len(training)))
    stream = Batches(
        training,
        batch_size,
        sampling=objective.sampling,
        rng=streams.training,
        jitter=None if data.steps is None else data.steps.float(),
    )
    validator = objective.validator(trainer.kept, data, options, streams.validation)
    result = train(
        trainer,
        stream,
        validator,
        steps_per_epoch=max(objective.min_steps_per_epoch, len(training) // batch_size),
        max_epochs=options.max_epochs,
        patience=options.validation.patience,
        max_time=max_time,
        largest_fall=objective.largest_fall * data.features,
        checkpoint=checkpoint,
        key=key,
        description=description,
        unit="rows" if data.image_shape is None else "images",
        verbose=options.verbose,
    )
    # A copy has its own tensors, without gradients and flat buffers of training.
    return copy.deepcopy(trainer.kept), result


def restored_model(
    options: FitOptions, schema: Schema, latent_dim: int, state: dict[str, Tensor]
) -> RoundtripModel:
    """Rebuild a trained model from its state dict, on the CPU."""
    shape = None if schema.images is None else schema.images.shape
    model = build_model(
        Sizes(schema.features, latent_dim, schema.context_dim, shape),
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


def _take_weights(model: RoundtripModel, start: RoundtripModel) -> None:
    """Load the weights of an earlier model.

    What is not trained, as a fixed sigma or the floor of the noise, follows from the present
    settings and rows; a prior that was fitted after training is left out.
    """
    own = model.state_dict()
    fixed = {name for name, weights in model.named_parameters() if not weights.requires_grad}
    fixed.add("noise.floor")
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
