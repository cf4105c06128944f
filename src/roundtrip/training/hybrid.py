"""`Hybrid`: settings of training by the paper's losses first and the likelihood bound after."""

from dataclasses import dataclass

from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Network
from roundtrip.parameters import check_number
from roundtrip.training.adversarial_trainer import AdversarialTrainer
from roundtrip.training.adversaries import Adversaries
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood import Likelihood
from roundtrip.training.objective import TrainingStreams


@dataclass(frozen=True, repr=False)
class Hybrid(Adversaries, Likelihood):  # numpydoc ignore=PR02
    """Two stages of training: the paper's losses with a small weight of the bound, then the bound.

    The second stage starts from the weights of the first stage with the best validation
    log-likelihood. A first stage that fails therefore costs only time.

    Parameters
    ----------
    draws, batch_size, min_steps_per_epoch : int, default="auto", 512 and 100
        See `Likelihood`.
    learning_rate, averaging : float, default="auto" and 0.998
        See `Likelihood`.
    alpha, beta : float, default=10.0
        Weights of the roundtrip losses of x and z, eq. (14).
    discriminator_x, discriminator_z : sequence of int, default=(256,) * 3 and (128,) * 2
        Widths of the hidden layers of D_x and D_z.
    pool_size : int, default=50
        Number of earlier fake batches kept to train the discriminators.
    first_share : float, default=1/3
        Share of the epochs, or of the time, of the first stage.
    first_rate : float, default=1/8
        Learning rate of the first stage in units of `learning_rate`. Adversarial training is
        unstable at higher rates.
    bound_weight : float, default=0.01
        Weight of the bound in the first stage, which trains the noise and the posterior.

    Examples
    --------
    >>> Hybrid(learning_rate=8e-3).first_stage.learning_rate
    0.001
    """

    first_share: float = 1 / 3
    first_rate: float = 1 / 8
    bound_weight: float = 0.01

    takes_mixed_rows = False

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
        """The objective of the second stage, and of the trials of latent dimensions."""
        return Likelihood(**{name: getattr(self, name) for name in Likelihood().get_params()})


@dataclass(frozen=True, repr=False)
class AdversarialStage(Hybrid):
    """The first stage of `Hybrid` as an objective of its own."""

    largest_fall = float("inf")
    scores_start = False

    def trainer(  # type: ignore[override]
        self, model: RoundtripModel, data: FittingData, network: Network, streams: TrainingStreams
    ) -> AdversarialTrainer:
        """Return a trainer on eq. (13)-(15) with the weighted bound in the loss of G and H."""
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
