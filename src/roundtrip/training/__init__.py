"""Fitting the networks of a `RoundtripModel` to data."""

from roundtrip.training.adversarial import Adversarial
from roundtrip.training.hybrid import Hybrid
from roundtrip.training.likelihood import Likelihood
from roundtrip.training.objective import Objective
from roundtrip.training.settings import Validation

__all__ = ["Adversarial", "Hybrid", "Likelihood", "Objective", "Validation"]
