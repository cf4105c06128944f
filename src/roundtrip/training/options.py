"""`FitOptions`: everything that a training depends on besides data, seeds and time."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.density.proposals import Proposal
from roundtrip.model.networks import Network
from roundtrip.model.noise import Noise
from roundtrip.model.prior import Prior
from roundtrip.training.objective import Objective
from roundtrip.training.settings import Validation


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
