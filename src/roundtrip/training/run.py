"""From settings and scaled data to a trained model."""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from roundtrip.model.core import RoundtripModel, posterior_outputs
from roundtrip.model.networks import (
    ConvDiscriminator,
    ConvEncoder,
    ConvGenerator,
    ImageShape,
    ResidualMLP,
    discriminator,
    mlp,
)
from roundtrip.model.noise import (
    ConstantGaussian,
    HeteroscedasticGaussian,
    MixtureNoise,
    ObservationModel,
)
from roundtrip.training import (
    AdversarialObjective,
    BoundValidation,
    LikelihoodObjective,
    SigmaValidation,
    TrainingResult,
    train,
)
from roundtrip.training.batches import Batches, jittered
from roundtrip.training.checkpoint import Checkpoint
from roundtrip.training.loop import DEFAULT_NAME, Objective, Validation
from roundtrip.training.principal import start_at_principal_components

CONTINUOUS_FLOOR = 1e-3
"""Smallest noise of a column, in units of the spread of its middle half."""

ROUNDED_FLOOR = 0.05
"""Smallest noise of a rounded column, in units of its rounding step."""

LARGEST_FALL = 1.0
"""Nats a feature by which likelihood training may fall below its best epoch; beyond, codes and
encoder have lost each other, and more steps do not bring them together. (Adversarial training may
fall and rise.)"""

SMALLEST_BATCH = 2
"""Batch norm needs two rows to know a spread."""


@dataclass(frozen=True)
class FittingData:
    """Scaled rows to train on and to validate with, and how coarse their columns are.

    Attributes
    ----------
    training, validation : `(rows, features)` float64 on the device of training; behind the features
        comes the context, if there is one.
    resolution : `(features,)` rounding step of each column in scaled units, 0 if it is not rounded.
    jitter : whether rounded columns are spread over their steps.
    log_det : of the scaling.
    """

    training: Tensor
    validation: Tensor
    resolution: Tensor
    jitter: bool
    log_det: float
    context_dim: int = 0
    image_shape: ImageShape | None = None

    @property
    def features(self) -> int:
        """Columns of x."""
        return self.training.shape[1] - self.context_dim

    @property
    def noise_floor(self) -> Tensor:
        """The width below which noise would only follow the rounding of a column, `(features,)`."""
        if self.image_shape is not None:  # most pixels are the same in most images
            return self.training.new_full((self.features,), CONTINUOUS_FLOOR)
        # NumPy's quantile, because torch's takes no more than 2**24 numbers.
        low, high = np.quantile(
            self.training[:, : self.features].cpu().numpy(), [0.25, 0.75], axis=0
        )
        spread = torch.from_numpy(high - low).to(self.training.device)
        spread = torch.where(spread > 0, spread, 1.0).clamp_max(1.0)
        return torch.maximum(CONTINUOUS_FLOOR * spread, ROUNDED_FLOOR * self.resolution)

    @property
    def steps(self) -> Tensor | None:
        """How far each column is spread, the context's not at all; None if nothing is."""
        if not self.jitter:
            return None
        return torch.cat([self.resolution, self.resolution.new_zeros(self.context_dim)])

    def as_trained(self, n_rows: int, seed: int) -> tuple[Tensor, Tensor]:
        """Some training rows and all validation rows as networks see them, rounding spread."""
        generator = torch.Generator(self.training.device).manual_seed(seed)
        order = torch.randperm(len(self.training), generator=generator, device=generator.device)
        some = self.spread(self.training[order[:n_rows]], generator)
        return some.float(), self.spread(self.validation, generator).float()

    def spread(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Rows with rounded columns spread over their steps, if that is wanted."""
        return rows if self.steps is None else jittered(rows, self.steps, generator)


def build_model(
    settings: Mapping[str, Any],
    *,
    features: int,
    latent_dim: int,
    context_dim: int = 0,
    image_shape: ImageShape | None = None,
    floor: Tensor | float = 0.0,
    generator: torch.Generator,
) -> RoundtripModel:
    """Fresh networks and noise for resolved settings, on the CPU."""
    if settings["network"] == "conv" and image_shape is None:
        raise ValueError("network='conv' is for images, (rows, height, width, channels)")
    has_posterior = settings["objective"] != "adversarial"
    noise = build_noise(settings, features=features, floor=floor)
    code = posterior_outputs(latent_dim) if has_posterior else latent_dim
    # In the paper only G and D_x take the context.
    encodes_context = settings["objective"] != "adversarial"
    code_inputs = latent_dim + context_dim
    row_inputs = features + context_dim if encodes_context else features
    generator_network: nn.Module
    encoder: nn.Module
    if settings["network"] == "conv":
        assert image_shape is not None
        generator_network = ConvGenerator(
            latent_dim,
            image_shape,
            context_dim=context_dim,
            hidden=settings["generator_hidden"][0],
            norm=settings["objective"] == "adversarial",
            generator=generator,
        )
        encoder = ConvEncoder(
            image_shape,
            code,
            context_dim=context_dim if encodes_context else 0,
            hidden=settings["encoder_hidden"][0],
            generator=generator,
        )
    elif settings["network"] == "residual":
        generator_network = ResidualMLP(
            code_inputs,
            noise.n_outputs,
            width=settings["generator_hidden"][0],
            blocks=len(settings["generator_hidden"]),
            linear_outputs=features,
            generator=generator,
        )
        encoder = ResidualMLP(
            row_inputs,
            code,
            width=settings["encoder_hidden"][0],
            blocks=len(settings["encoder_hidden"]),
            linear_outputs=code,
            generator=generator,
        )
    else:
        generator_network = mlp(
            code_inputs, noise.n_outputs, settings["generator_hidden"], generator=generator
        )
        encoder = mlp(row_inputs, code, settings["encoder_hidden"], generator=generator)
    return RoundtripModel(
        generator_network,
        encoder,
        latent_dim,
        noise=noise,
        has_posterior=has_posterior,
        context_dim=context_dim,
        encodes_context=encodes_context,
    )


def build_noise(
    settings: Mapping[str, Any], *, features: int, floor: Tensor | float
) -> ObservationModel:
    """The observation model that resolved settings name."""
    kind = settings["noise"]
    if kind == "mixture":
        return MixtureNoise(
            features,
            moving=settings["noise_components"],
            fixed=settings["noise_boxes"],
            floor=floor,
        )
    if kind == "heteroscedastic":
        return HeteroscedasticGaussian(features, floor=floor)
    sigma = 1.0 if settings["sigma"] == "auto" else settings["sigma"]
    if settings["objective"] == "adversarial":
        floor = 0.0  # sigma is not learnt but chosen from a grid
    noise = ConstantGaussian(features, sigma=sigma, per_feature=kind == "diagonal", floor=floor)
    # A sigma that was asked for stays.
    return noise.requires_grad_(settings["sigma"] == "auto")


def fit_model(
    settings: Mapping[str, Any],
    data: FittingData,
    *,
    latent_dim: int,
    seed: int,
    validation_seed: int,
    max_time: float | None = None,
    start: RoundtripModel | None = None,
    checkpoint: Checkpoint | None = None,
    bound_weight: float = 0.0,
    name: str = DEFAULT_NAME,
) -> tuple[RoundtripModel, TrainingResult]:
    """Train a model by resolved settings, a new one or from the weights of `start`.

    `bound_weight` is that of the bound beside the losses of an objective that is not likelihood.
    """
    device = data.training.device
    generator = torch.Generator().manual_seed(seed)
    randomness = torch.Generator(device).manual_seed(seed + 1)
    model = build_model(
        settings,
        features=data.features,
        latent_dim=latent_dim,
        context_dim=data.context_dim,
        image_shape=data.image_shape,
        floor=data.noise_floor.cpu(),
        generator=generator,
    ).to(device)
    training = data.training.float()
    if start is not None:
        try:
            # The prior is fitted anew to what comes of the training.
            model.load_state_dict(
                {n: w for n, w in start.state_dict().items() if not n.startswith("prior.")}
            )
        except RuntimeError as error:
            raise ValueError(
                "the earlier fit has networks of another shape; set warm_start=False, or the "
                "latent_dim, noise and hidden layers of that fit"
            ) from error
    elif settings["network"] == "residual" and model.has_posterior:
        start_at_principal_components(model, data.spread(data.training, randomness))
    objective = _objective(settings, model, data, bound_weight, generator, randomness)
    by_likelihood = isinstance(objective, LikelihoodObjective)
    # Rows that repeat within a batch would cost time and tell nothing; only the paper draws them.
    batch_size = settings["batch_size"]
    if settings["sampling"] == "shuffle":
        batch_size = max(SMALLEST_BATCH, min(batch_size, len(training)))
    stream = Batches(
        training,
        batch_size,
        sampling=settings["sampling"],
        generator=randomness,
        jitter=None if data.steps is None else data.steps.float(),
    )
    result = train(
        objective,
        stream,
        _validation(settings, objective, data, validation_seed),
        steps_per_epoch=max(settings["min_steps_per_epoch"], len(training) // batch_size),
        max_epochs=settings["max_epochs"],
        patience=settings["patience"],
        max_time=max_time,
        largest_fall=LARGEST_FALL * data.features if by_likelihood else math.inf,
        checkpoint=checkpoint,
        name=name,
        unit="rows" if data.image_shape is None else "images",
        verbose=bool(settings["verbose"]),
    )
    # A copy has tensors of its own, without gradients and the buffers of training.
    return copy.deepcopy(objective.kept), result


def _objective(
    settings: Mapping[str, Any],
    model: RoundtripModel,
    data: FittingData,
    bound_weight: float,
    generator: torch.Generator,
    randomness: torch.Generator,
) -> Objective:
    if settings["objective"] == "likelihood":
        return LikelihoodObjective(
            model,
            n_draws=settings["training_draws"],
            learning_rate=float(settings["learning_rate"]),
            averaging=settings["averaging"],
            generator=randomness,
        )
    hidden_x, hidden_z = settings["discriminator_x_hidden"], settings["discriminator_z_hidden"]
    of_x: nn.Module
    if settings["network"] != "conv" or data.image_shape is None:
        of_x = discriminator(data.training.shape[1], hidden_x, generator=generator)
    else:
        of_x = ConvDiscriminator(
            data.image_shape,
            context_dim=data.context_dim,
            hidden=hidden_x[0],
            generator=generator,
        )
    of_z = discriminator(model.latent_dim, hidden_z, generator=generator)
    return AdversarialObjective(
        model,
        of_x.to(model.device),
        of_z.to(model.device),
        alpha=settings["alpha"],
        beta=settings["beta"],
        learning_rate=float(settings["learning_rate"]),
        pool_size=settings["pool_size"],
        averaging=settings["averaging"],
        bound_weight=bound_weight,
        n_draws=settings["training_draws"],
        generator=randomness,
    )


def _validation(
    settings: Mapping[str, Any], objective: Objective, data: FittingData, seed: int
) -> Validation:
    if objective.kept.has_posterior:
        generator = torch.Generator(data.validation.device).manual_seed(seed)
        return BoundValidation(
            objective.kept,
            data.spread(data.validation, generator).float(),
            n_samples=settings["validation_samples"],
            seed=seed,
            log_det=data.log_det,
        )
    return SigmaValidation(
        objective.kept,
        data.validation,
        sigmas=settings["sigma_grid"] if settings["sigma"] == "auto" else [settings["sigma"]],
        selection_epochs=settings["sigma_epochs"],
        n_samples=settings["validation_samples"],
        scale=settings["proposal_scale"],
        df=settings["proposal_df"],
        seed=seed,
        log_det=data.log_det,
    )
