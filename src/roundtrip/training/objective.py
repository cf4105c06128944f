"""What every training objective offers, and `FitOptions`: all that a training depends on."""

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
from roundtrip.model.prior import Prior
from roundtrip.parameters import Component
from roundtrip.training.data import FittingData
from roundtrip.training.settings import Validation


class Trainer(Protocol):
    """Networks that a `step` improves, at a learning rate with a schedule."""

    networks: nn.ModuleDict
    kept: RoundtripModel
    learning_rate: float

    def step(self, rows: Rows) -> dict[str, Tensor]:
        """One update on a batch; returns its losses by name."""

    def schedule(self, fraction: float) -> None:
        """Adapt to the share of training that is over."""

    def restart(self, learning_rate: float) -> None:
        """Go on from the present weights at another learning rate."""

    def state_dict(self) -> dict[str, Any]:
        """All that further steps depend on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""


class Validator(Protocol):
    """Scores the kept model after an epoch; the higher, the better."""

    selection_epochs: int | None

    def __call__(self, epoch: int) -> float:
        """Mean log-likelihood of held-out rows; epochs count from 1."""

    def report(self) -> dict[str, float]:
        """Further numbers for the history."""


@dataclass(frozen=True)
class Randomness:
    """The random streams of one training.

    Attributes
    ----------
    weights : torch.Generator
        Of initial weights, on the CPU.
    training : torch.Generator
        Of batches and draws, on the device of training.
    validation : int
        Seed of the draws of validation.
    """

    weights: torch.Generator
    training: torch.Generator
    validation: int


class Objective(Component, ABC):
    """Settings of training: what `Roundtrip(objective=...)` takes."""

    has_posterior = True
    """Whether H is trained to give a distribution q(z | x), not only a point."""

    learns_noise = True
    """Whether the noise is trained; otherwise validation chooses its sigma."""

    sampling = "shuffle"
    """Whether batches visit every row in turn ("shuffle") or are drawn with "replacement"."""

    largest_fall = float("inf")
    """Nats per feature by which an epoch may be below the best one; beyond, it is taken back."""

    learning_rate: float | Literal["auto"]
    batch_size: int | Literal["auto"]
    min_steps_per_epoch: int
    averaging: float

    @abstractmethod
    def resolved(self, *, pixels: int, rate_follows_pixels: bool) -> Self:
        """The same with every "auto" replaced; `pixels` are the numbers per image, 0 for tables."""

    @abstractmethod
    def default_latent_dim(self, features: int) -> int:
        """The dimension of z for so many columns, if nothing is tried."""

    def check_with(self, noise: Noise, prior: Prior) -> None:
        """Refuse components that this objective can't train."""

    @abstractmethod
    def trainer(
        self, model: RoundtripModel, data: FittingData, network: Network, streams: Randomness
    ) -> Trainer:
        """What improves the model."""

    @abstractmethod
    def validator(
        self, model: RoundtripModel, data: FittingData, options: "FitOptions", seed: int
    ) -> Validator:
        """What judges the model between epochs."""


@dataclass(frozen=True)
class FitOptions:
    """Components and numbers with every "auto" replaced but that of `latent_dim`.

    Attributes
    ----------
    latent_dim : int or "auto"
        Dimension of z; "auto": it is tried out.
    objective, noise, network, prior : Objective, Noise, Network, Prior
        The components.
    max_epochs : float
        Upper limit of the epochs; may be infinite.
    validation, proposal : Validation, Proposal
        How held-out rows are used, and the paper's proposal.
    verbose : bool
        Whether training shows its progress.
    """

    latent_dim: int | Literal["auto"]
    objective: Objective
    noise: Noise
    network: Network
    prior: Prior
    max_epochs: float
    validation: Validation
    proposal: Proposal
    verbose: bool = False
