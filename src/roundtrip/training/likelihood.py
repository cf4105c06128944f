"""`Likelihood`: settings of the default training, which maximises a bound on log p(x)."""

import math
from dataclasses import dataclass
from typing import Literal, Self

import torch

from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Network
from roundtrip.parameters import check_integer, check_number, is_auto
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood_trainer import LikelihoodTrainer
from roundtrip.training.objective import FitOptions, Objective, TrainingStreams
from roundtrip.training.validators import BoundValidation

SMALL_TABLE = 20_000
"""Tables of fewer rows are small: trials choose how long they are trained (`length_search.py`)."""

WIDE_TABLE, MOST_LATENT = 24, 64
"""Features above which "auto" adds fewer latent dimensions per feature and lowers the learning
rate, and the most latent dimensions that it gives."""

LARGEST_FALL = 0.2
"""Nats per feature by which an epoch may fall below the best one. After a larger fall the posterior
q(z | x) no longer matches G, and further steps do not repair it."""

FULL_RATE_PIXELS = 784
"""Numbers per image above which "auto" lowers the learning rate of fully connected networks. A step
of the encoder's weights moves a code in proportion to the number of pixels, which are not centred,
and more pixels determine the code more precisely. The rate therefore falls with the square of their
number (measured up to 3,072). Convolutions see few pixels at a time and keep their rate."""


@dataclass(frozen=True, repr=False)
class Likelihood(Objective):  # numpydoc ignore=PR02
    """Joint training of G, H and the noise by an importance-weighted bound on log p(x).

    Muon trains the matrices between hidden layers at five times the learning rate, Adam trains all
    other weights. The rates warm up and then fall to zero along a cosine.

    Parameters
    ----------
    draws : int or "auto", default="auto"
        Draws of z per row for the bound. "auto" is 2, and 1 for images.
    learning_rate : float or "auto", default="auto"
        Highest learning rate of Adam. "auto" is 8e-3 for tables and 4e-3 for images; it is lower
        for tables of more than 24 columns and, without convolutions, for images of more than 784
        numbers.
    batch_size : int or "auto", default="auto"
        Rows per step. A smaller table is one batch. "auto" is 512, and 256 for tables of fewer
        than 20,000 rows.
    min_steps_per_epoch : int or "auto", default="auto"
        An epoch is one pass over the rows, but has at least this many steps. "auto" is 100, and 10
        for tables of fewer than 20,000 rows, which are overfitted within 100 steps.
    averaging : float, default=0.998
        Decay per step of the running average of the weights, which is validated and kept. With 0
        the weights themselves are kept.

    Examples
    --------
    >>> Likelihood().resolved(pixels=0, rate_follows_pixels=False).learning_rate
    0.008
    """

    draws: int | Literal["auto"] = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    batch_size: int | Literal["auto"] = "auto"
    min_steps_per_epoch: int | Literal["auto"] = "auto"
    averaging: float = 0.998

    takes_mixed_rows = True
    largest_fall = LARGEST_FALL
    scores_start = True
    """Whether the weights before the first step compete with those of epochs."""

    def check(self) -> None:
        """Check every setting."""
        if not is_auto(self.draws):
            check_integer("draws", self.draws, minimum=1)
        check_training(self)

    def resolved(
        self,
        *,
        pixels: int,
        rate_follows_pixels: bool,
        rows: float = math.inf,
        features: int = 0,
    ) -> Self:
        """Replace every "auto"; see `Objective.resolved`."""
        rate = self.learning_rate
        if rate == "auto":
            rate = 4e-3 if pixels else 8e-3
            if rate_follows_pixels:
                rate *= min(1.0, FULL_RATE_PIXELS / max(pixels, 1)) ** 2
            elif not pixels:
                # More columns determine z more exactly, so that H must move in smaller steps.
                rate *= min(1.0, WIDE_TABLE / max(features, 1)) ** 0.5
        draws = self.draws
        if draws == "auto":
            draws = 1 if pixels else 2
        small = rows < SMALL_TABLE and not pixels
        batch_size, steps = self.batch_size, self.min_steps_per_epoch
        return self.with_params(
            draws=draws,
            learning_rate=rate,
            batch_size=(256 if small else 512) if batch_size == "auto" else batch_size,
            min_steps_per_epoch=(10 if small else 100) if steps == "auto" else steps,
        )

    def default_latent_dim(self, features: int) -> int:
        """Return two thirds of the features; all of up to 3 features, and less beyond 24.

        Training by likelihood leaves dimensions unused that it does not need. In wide tables, whose
        columns share what they depend on, more dimensions only cost time: the posterior of z has a
        full covariance.

        Examples
        --------
        >>> [Likelihood().default_latent_dim(n) for n in (1, 2, 3, 6, 9, 17, 36, 90, 1000)]
        [1, 2, 3, 4, 6, 11, 18, 27, 64]
        """
        if features <= WIDE_TABLE:
            return min(features, max(3, round(2 * features / 3)))
        return min(MOST_LATENT, round(2 * WIDE_TABLE / 3 + (features - WIDE_TABLE) / 6))

    def trainer(
        self, model: RoundtripModel, data: FittingData, network: Network, streams: TrainingStreams
    ) -> LikelihoodTrainer:
        """Return a trainer on the bound."""
        assert self.draws != "auto"
        return LikelihoodTrainer(
            model,
            draws=self.draws,
            learning_rate=float(self.learning_rate),
            averaging=self.averaging,
            rng=streams.training,
        )

    def validator(
        self, model: RoundtripModel, data: FittingData, options: FitOptions, seed: int
    ) -> BoundValidation:
        """Return the bound of held-out rows, with the draws of `Validation`."""
        draws = options.validation.draws
        assert draws != "auto"
        rng = torch.Generator(data.validation.device).manual_seed(seed)
        return BoundValidation(
            model,
            data.spread(data.validation, rng).to(torch.float32),
            draws=draws,
            seed=seed,
            log_det=data.log_det,
            scores_start=self.scores_start,
        )


def check_training(objective: Objective) -> None:
    """Check the settings that all objectives have."""
    if not is_auto(objective.learning_rate):
        check_number("learning_rate", objective.learning_rate, above=0)
    if not is_auto(objective.batch_size):
        check_integer("batch_size", objective.batch_size, minimum=2)
    if not is_auto(objective.min_steps_per_epoch):
        check_integer("min_steps_per_epoch", objective.min_steps_per_epoch, minimum=1)
    if objective.averaging != 0:
        check_number("averaging", objective.averaging, above=0, below=1)
