"""Settings of the paper's losses, eq. (13) and (14), shared by `Adversarial` and `Hybrid`."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import Network, discriminator
from roundtrip.parameters import Component, check_integer, check_number, check_widths
from roundtrip.training.adversarial_trainer import AdversarialTrainer
from roundtrip.training.data import FittingData
from roundtrip.training.objective import TrainingStreams


@dataclass(frozen=True, repr=False)
class Adversaries(Component):  # numpydoc ignore=PR02
    """Weights of the roundtrip loss, the discriminators and their pool of fakes.

    Parameters
    ----------
    alpha, beta : float, default=10.0
        Weights of the roundtrip losses of x and z, eq. (14).
    discriminator_x, discriminator_z : sequence of int, default=(256,) * 3 and (128,) * 2
        Widths of the hidden layers of D_x and D_z.
    pool_size : int, default=50
        Number of earlier fake batches kept to train the discriminators.
    """

    alpha: float = 10.0
    beta: float = 10.0
    discriminator_x: Sequence[int] = (256,) * 3
    discriminator_z: Sequence[int] = (128,) * 2
    pool_size: int = 50

    def check_adversaries(self) -> None:
        """Check these settings."""
        check_number("alpha", self.alpha, above=0)
        check_number("beta", self.beta, above=0)
        check_widths("discriminator_x", self.discriminator_x)
        check_widths("discriminator_z", self.discriminator_z)
        check_integer("pool_size", self.pool_size, minimum=0)

    def adversarial_trainer(
        self,
        model: RoundtripModel,
        data: FittingData,
        network: Network,
        streams: TrainingStreams,
        *,
        learning_rate: float,
        averaging: float,
        bound_weight: float = 0.0,
        draws: int = 1,
    ) -> AdversarialTrainer:
        """Return an `AdversarialTrainer` with new discriminators."""
        sizes = data.sizes(model.latent_dim)
        D_x = network.discriminator(sizes, self.discriminator_x, rng=streams.weights)
        D_z = discriminator(model.latent_dim, self.discriminator_z, rng=streams.weights)
        return AdversarialTrainer(
            model,
            D_x.to(model.device),
            D_z.to(model.device),
            alpha=self.alpha,
            beta=self.beta,
            learning_rate=learning_rate,
            pool_size=self.pool_size,
            averaging=averaging,
            bound_weight=bound_weight,
            draws=draws,
            rng=streams.training,
        )
