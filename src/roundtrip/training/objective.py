"""Base class of training objectives, and `FitOptions`, the options of one fit."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import torch
from torch import Tensor, nn

from roundtrip.data import Rows
from roundtrip.density.proposals import Proposal
from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Network
from roundtrip.model.noise import Noise
from roundtrip.model.prior import MixturePrior, Prior
from roundtrip.parameters import Component
from roundtrip.training.data import FittingData
from roundtrip.training.validation import Validation


class Trainer(Protocol):
    """Networks and the updates that train them."""

    networks: nn.ModuleDict
    kept: RoundtripModel
    learning_rate: float

    def step(self, rows: Rows) -> dict[str, Tensor]:
        """Update the networks on one batch; return the losses by name."""

    def schedule(self, fraction: float) -> None:
        """Set the learning rate after a `fraction` of training, from 0 to 1."""

    def restart(self, learning_rate: float) -> None:
        """Reset the optimisers and continue at another learning rate."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything that further steps depend on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""


class Validator(Protocol):
    """Score of the kept model after an epoch; higher is better."""

    selection_epochs: int | None
    scores_start: bool
    """Whether the model before the first step is worth a score, as epoch 0."""

    def __call__(self, epoch: int) -> float:
        """Return the mean log-likelihood of held-out rows; epochs count from 1."""

    def report(self) -> dict[str, float]:
        """Return further values for the history."""


@dataclass(frozen=True)
class TrainingStreams:
    """The random streams of one training.

    Attributes
    ----------
    weights : torch.Generator
        Source of initial weights, on the CPU.
    training : torch.Generator
        Source of batches and draws, on the device of training.
    validation : int
        Seed of the draws in validation.
    """

    weights: torch.Generator
    training: torch.Generator
    validation: int


class Objective(Component, ABC):
    """Base class of the settings of training, `Roundtrip(objective=...)`."""

    has_posterior = True
    """Whether H gives a distribution q(z | x); otherwise it gives a point."""

    learns_noise = True
    """Whether the noise is trained; otherwise the validation rows choose its sigma."""

    takes_mixed_rows = False
    """Whether rows may have categories and missing cells."""

    sampling = "shuffle"
    """Whether batches visit every row once per pass ("shuffle") or are drawn with "replacement"."""

    largest_fall = float("inf")
    """Nats per feature by which an epoch may fall below the best one before it is undone."""

    learning_rate: float | Literal["auto"]
    batch_size: int | Literal["auto"]
    min_steps_per_epoch: int | Literal["auto"]
    averaging: float

    @abstractmethod
    def resolved(
        self,
        *,
        pixels: int,
        rate_follows_pixels: bool,
        rows: float = math.inf,
        features: int = 0,
    ) -> Self:
        """Return the same settings with every "auto" replaced.

        Parameters
        ----------
        pixels : int
            Numbers per image, 0 for tables.
        rate_follows_pixels : bool
            Whether the learning rate depends on `pixels`.
        rows : float, default=inf
            Number of rows.
        features : int, default=0
            Number of features of a table; 0 if it is not known yet.

        Returns
        -------
        Objective
            Settings without "auto".
        """

    @abstractmethod
    def default_latent_dim(self, features: int) -> int:
        """Return the latent dimension for this number of features, used without trials."""

    def check_with(self, noise: Noise, prior: Prior) -> None:
        """Raise `ValueError` for components that this objective can't train."""
        if isinstance(prior, MixturePrior) and not self.has_posterior:
            raise ValueError(
                "this objective trains no posterior of z that a mixture could be fitted to, so "
                f"prior must be 'normal', or one of your own, got {prior!r}"
            )

    @abstractmethod
    def trainer(
        self, model: RoundtripModel, data: FittingData, network: Network, streams: TrainingStreams
    ) -> Trainer:
        """Return what trains the model."""

    @abstractmethod
    def validator(
        self, model: RoundtripModel, data: FittingData, options: "FitOptions", seed: int
    ) -> Validator:
        """Return what scores the model after each epoch."""


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit; an "auto" that is left is replaced during training.

    Attributes
    ----------
    latent_dim : int or "auto"
        Dimension of z. With "auto" trials choose it.
    objective, noise, network, prior : Objective, Noise, Network, Prior
        The components.
    max_epochs : float or "auto"
        Largest number of epochs; may be infinite. With "auto" trials choose it.
    validation, proposal : Validation, Proposal
        Settings of validation and of the paper's proposal.
    dequantize : bool
        Whether rounded columns are spread over their rounding steps.
    verbose : bool
        Whether training shows its progress.
    """

    latent_dim: int | Literal["auto"]
    objective: Objective
    noise: Noise
    network: Network
    prior: Prior
    max_epochs: float | Literal["auto"]
    validation: Validation
    proposal: Proposal
    dequantize: bool
    verbose: bool = False
