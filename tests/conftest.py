"""What many tests share."""

import sys
from pathlib import Path

import numpy as np
import pytest

from roundtrip import Roundtrip
from roundtrip.datasets import SimulatedData, make_independent_mixture

sys.path.insert(0, str(Path(__file__).parent))  # tests/oracles.py


TINY = {
    "generator_hidden": (16, 16),
    "encoder_hidden": (16, 16),
    "discriminator_x_hidden": (16, 16),
    "discriminator_z_hidden": (16, 16),
    "max_epochs": 2,
    "min_steps_per_epoch": 4,
    "batch_size": 32,
    "validation_samples": 50,
    "n_samples": 100,
    "random_state": 0,
}
"""Settings with which a fit takes a fraction of a second."""


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
    return Roundtrip(latent_dim=2, objective="adversarial", **TINY).fit(mixture.X)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
