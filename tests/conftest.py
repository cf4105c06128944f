"""What many tests share."""

import sys
from pathlib import Path

import numpy as np
import pytest

from roundtrip import MLP, Adversarial, Likelihood, Proposal, Residual, Roundtrip, Validation
from roundtrip.datasets import SimulatedData, make_independent_mixture

sys.path.insert(0, str(Path(__file__).parent))  # tests/oracles.py


TINY = {
    "network": Residual(16, 2),
    "objective": Likelihood(batch_size=32, min_steps_per_epoch=4),
    "validation": Validation(draws=50),
    "proposal": Proposal(draws=100),
    "max_epochs": 2,
    "random_state": 0,
}
"""Settings with which a fit takes a fraction of a second."""

TINY_ADVERSARIAL = TINY | {
    "network": MLP((16, 16), (16, 16)),
    "objective": Adversarial(
        discriminator_x=(16, 16), discriminator_z=(16, 16), batch_size=32, min_steps_per_epoch=4
    ),
}
"""The same with the paper's training."""


@pytest.fixture
def tiny() -> Roundtrip:
    return Roundtrip(**TINY)


@pytest.fixture(scope="session")
def mixture() -> SimulatedData:
    return make_independent_mixture(2000, sd=0.5, random_state=0)


@pytest.fixture(scope="session")
def fitted(mixture: SimulatedData) -> Roundtrip:
    """A small fit that nobody may change."""
    return Roundtrip(latent_dim=2, **TINY).fit(mixture.X)


@pytest.fixture(scope="session")
def adversarial(mixture: SimulatedData) -> Roundtrip:
    """The same with the paper's training and noise."""
    return Roundtrip(latent_dim=2, **TINY_ADVERSARIAL).fit(mixture.X)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
