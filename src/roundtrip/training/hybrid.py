"""The objective "hybrid": the paper's losses first, likelihood alone after."""

from dataclasses import dataclass

from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Network
from roundtrip.parameters import check_number
from roundtrip.training.adversarial_trainer import AdversarialTrainer
from roundtrip.training.adversaries import Adversaries
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood import Likelihood
from roundtrip.training.objective import Randomness


@dataclass(frozen=True, repr=False)
class Hybrid(Adversaries, Likelihood):
    """The paper's losses and a little of the bound for a third of training, then the bound alone.

    The second stage starts from the best weights of the first by validation likelihood, so that
    adversarial training that goes astray costs time, but no more.

    Parameters
    ----------
    draws, learning_rate, batch_size, min_steps_per_epoch, averaging
        As in `Likelihood`.
    alpha, beta, discriminator_x, discriminator_z, pool_size
        As in `Adversarial`.
    first_share : float, default=1/3
        Share of the epochs or of the time for the first stage.
    first_rate : float, default=1/8
        Learning rate of the first stage in units of `learning_rate`; adversarial training bears
        no more.
    bound_weight : float, default=0.01
        Weight of the bound beside the adversarial losses, so that noise and posterior follow.
    """

    first_share: float = 1 / 3
    first_rate: float = 1 / 8
    bound_weight: float = 0.01

    def check(self) -> None:
        """Check every setting."""
        Likelihood.check(self)
        self.check_adversaries()
        check_number("first_share", self.first_share, above=0, below=1)
        check_number("first_rate", self.first_rate, above=0)
        check_number("bound_weight", self.bound_weight, above=0)

    @property
    def first_stage(self) -> "AdversarialStage":
        """The objective of the first stage."""
        rate = self.first_rate * float(self.learning_rate)
        return AdversarialStage(**(self.get_params() | {"learning_rate": rate}))

    @property
    def second_stage(self) -> Likelihood:
        """The objective of the second stage, and of trials."""
        return Likelihood(**{name: getattr(self, name) for name in Likelihood().get_params()})


@dataclass(frozen=True, repr=False)
class AdversarialStage(Hybrid):
    """The first stage of `Hybrid` by itself."""

    largest_fall = float("inf")

    def trainer(  # type: ignore[override]
        self, model: RoundtripModel, data: FittingData, network: Network, streams: Randomness
    ) -> AdversarialTrainer:
        """Steps on eq. (13), (14) and a little of the bound."""
        assert self.draws != "auto"
        return self.adversarial_trainer(
            model,
            data,
            network,
            streams,
            learning_rate=float(self.learning_rate),
            averaging=self.averaging,
            bound_weight=self.bound_weight,
            draws=self.draws,
        )
