"""`Likelihood`: the settings of the default training, which maximises a bound on log p(x)."""

from dataclasses import dataclass
from typing import Literal, Self

import torch

from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Network
from roundtrip.parameters import check_integer, check_number, is_auto
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood_trainer import LikelihoodTrainer
from roundtrip.training.objective import FitOptions, Objective, Randomness
from roundtrip.training.validation import BoundValidation

LARGEST_FALL = 1.0
"""Nats per feature by which training may fall below its best epoch; beyond, codes and encoder have
lost each other, and more steps do not bring them together."""

FULL_RATE_PIXELS = 784
"""Numbers per image up to which the learning rate of images is as it stands. A step of the
encoder's weights moves a code in proportion to the pixels, which are not centred, and the more of
them there are, the more exactly they fix the code: beyond, the rate falls by the square of their
number (measured up to 3,072). Convolutions see a few pixels at a time and keep their rate."""


@dataclass(frozen=True, repr=False)
class Likelihood(Objective):
    """G, H and the noise together maximise an importance-weighted bound on log p(x).

    The matrices between hidden layers are trained by Muon at five times the learning rate, all
    other weights by Adam; the rates warm up and fall to zero along a cosine.

    Parameters
    ----------
    draws : int or "auto", default="auto"
        Draws of z per row for the bound. "auto": 2; 1 for images.
    learning_rate : float or "auto", default="auto"
        Of Adam, at its highest. "auto": 8e-3; 4e-3 for images, and lower for those of more than
        784 numbers.
    batch_size : int, default=512
        Rows per step, at most all of them.
    min_steps_per_epoch : int, default=100
        An epoch is one pass over the rows, but at least so many steps.
    averaging : float, default=0.998
        Decay per step of the running average of the weights that is validated and kept; 0 keeps
        the weights themselves.
    """

    draws: int | Literal["auto"] = "auto"
    learning_rate: float | Literal["auto"] = "auto"
    batch_size: int = 512
    min_steps_per_epoch: int = 100
    averaging: float = 0.998

    largest_fall = LARGEST_FALL

    def check(self) -> None:
        """Check every setting."""
        if not is_auto(self.draws):
            check_integer("draws", self.draws, minimum=1)
        check_training(self)

    def resolved(self, *, pixels: int, rate_follows_pixels: bool) -> Self:
        """The settings for tables, or for images of so many numbers."""
        rate = self.learning_rate
        if rate == "auto":
            rate = 4e-3 if pixels else 8e-3
            if rate_follows_pixels:
                rate *= min(1.0, FULL_RATE_PIXELS / max(pixels, 1)) ** 2
        draws = self.draws
        if draws == "auto":
            draws = 1 if pixels else 2
        return self.with_params(draws=draws, learning_rate=rate)

    def default_latent_dim(self, features: int) -> int:
        """Two thirds of the features, of which likelihood leaves unused what it does not need.

        >>> [Likelihood().default_latent_dim(n) for n in (1, 2, 3, 6, 9, 17)]
        [1, 2, 3, 4, 6, 11]
        """
        return min(features, max(3, round(2 * features / 3)))

    def trainer(
        self, model: RoundtripModel, data: FittingData, network: Network, streams: Randomness
    ) -> LikelihoodTrainer:
        """Steps on the bound."""
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
        """The bound of held-out rows, from more draws."""
        draws = options.validation.draws
        assert draws != "auto"
        rng = torch.Generator(data.validation.device).manual_seed(seed)
        return BoundValidation(
            model,
            data.spread(data.validation, rng).to(torch.float32),
            draws=draws,
            seed=seed,
            log_det=data.log_det,
        )


def check_training(objective: Objective) -> None:
    """Check what every objective's training has."""
    if not is_auto(objective.learning_rate):
        check_number("learning_rate", objective.learning_rate, above=0)
    check_integer("batch_size", objective.batch_size, minimum=2)
    check_integer("min_steps_per_epoch", objective.min_steps_per_epoch, minimum=1)
    if objective.averaging != 0:
        check_number("averaging", objective.averaging, above=0, below=1)
