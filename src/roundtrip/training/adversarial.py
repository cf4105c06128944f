"""`Adversarial`: settings of the paper's training, eq. (13)-(15)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Network
from roundtrip.model.noise import LARGEST_SIGMA, SMALLEST_SIGMA, Isotropic, Noise
from roundtrip.model.prior import Prior
from roundtrip.parameters import (
    check_choice,
    check_integer,
    check_numbers,
)
from roundtrip.training.adversarial_trainer import AdversarialTrainer
from roundtrip.training.adversaries import Adversaries
from roundtrip.training.batches import SAMPLING
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood import check_training
from roundtrip.training.objective import FitOptions, Objective, TrainingStreams
from roundtrip.training.validators import SigmaValidation

DEFAULT_SIGMA_GRID = tuple(float(f"{value:.2g}") for value in np.geomspace(0.005, 1.0, 24))


@dataclass(frozen=True, repr=False)
class Adversarial(Adversaries, Objective):  # numpydoc ignore=PR02
    """The paper's training: two least-squares GANs and the roundtrip loss, eq. (13)-(15).

    H gives a point. The validation rows choose sigma of the isotropic noise.

    Parameters
    ----------
    alpha, beta : float, default=10.0
        Weights of the roundtrip losses of x and z, eq. (14).
    discriminator_x, discriminator_z : sequence of int, default=(256,) * 3 and (128,) * 2
        Widths of the hidden layers of D_x and D_z.
    pool_size : int, default=50
        Number of earlier fake batches kept to train the discriminators.
    learning_rate : float, default=5e-4
        Learning rate of Adam for all networks. The paper uses 2e-4.
    batch_size : int, default=128
        Rows per step. The authors' code uses 64.
    min_steps_per_epoch : int, default=100
        An epoch is one pass over the rows, but has at least this many steps.
    averaging : float, default=0.995
        Decay per step of the running average of the weights, which is validated and kept. With 0
        the weights themselves are kept, as in the paper.
    sampling : {"shuffle", "replacement"}, default="shuffle"
        "shuffle" visits every row once per epoch; "replacement" draws batches with replacement,
        as the paper does.
    sigma_grid : sequence of float, default=24 values from 0.005 to 1
        Candidates for sigma, used if the noise has no sigma of its own.
    sigma_epochs : int, default=None
        Number of epochs after which sigma is fixed; the paper uses 20. With None sigma is chosen
        in every epoch, together with the weights.

    Examples
    --------
    >>> Adversarial(alpha=1.0).beta
    10.0
    """

    learning_rate: float = 5e-4
    batch_size: int = 128
    min_steps_per_epoch: int = 100
    averaging: float = 0.995
    sampling: str = "shuffle"
    sigma_grid: Sequence[float] = DEFAULT_SIGMA_GRID
    sigma_epochs: int | None = None

    has_posterior = False
    learns_noise = False

    def check(self) -> None:
        """Check every setting."""
        check_training(self)
        self.check_adversaries()
        check_choice("sampling", self.sampling, SAMPLING)
        check_numbers("sigma_grid", self.sigma_grid, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
        if self.sigma_epochs is not None:
            check_integer("sigma_epochs", self.sigma_epochs, minimum=1)

    def check_with(self, noise: Noise, prior: Prior) -> None:
        """Refuse noise other than isotropic, and a prior that is fitted to q(z | x)."""
        if not isinstance(noise, Isotropic):
            raise ValueError(
                "objective='adversarial' learns no noise of its own, so noise must be 'isotropic', "
                f"got {noise!r}; use objective='hybrid' or 'likelihood'"
            )
        super().check_with(noise, prior)

    def resolved(
        self,
        *,
        pixels: int,
        rate_follows_pixels: bool,
        rows: float = math.inf,
        features: int = 0,
    ) -> Self:
        """Return the same settings: none of them depends on the data."""
        return self

    def default_latent_dim(self, features: int) -> int:
        """Return half of the features, about as in the paper's Table S1; all of up to 3 features.

        Examples
        --------
        >>> [Adversarial().default_latent_dim(n) for n in (1, 2, 3, 6, 9, 17)]
        [1, 2, 3, 3, 5, 9]
        """
        return min(features, max(3, (features + 1) // 2))

    def trainer(
        self, model: RoundtripModel, data: FittingData, network: Network, streams: TrainingStreams
    ) -> AdversarialTrainer:
        """Return a trainer that alternates between the two minimisations of eq. (15)."""
        return self.adversarial_trainer(
            model,
            data,
            network,
            streams,
            learning_rate=float(self.learning_rate),
            averaging=self.averaging,
        )

    def validator(
        self, model: RoundtripModel, data: FittingData, options: FitOptions, seed: int
    ) -> SigmaValidation:
        """Return the log-likelihood of held-out rows at the best sigma."""
        noise, draws = options.noise, options.validation.draws
        assert isinstance(noise, Isotropic)
        assert draws != "auto"
        return SigmaValidation(
            model,
            data.validation,
            sigmas=self.sigma_grid if noise.sigma == "auto" else [noise.sigma],
            selection_epochs=self.sigma_epochs,
            draws=draws,
            scale=options.proposal.scale,
            df=options.proposal.df,
            seed=seed,
            log_det=data.log_det,
        )
