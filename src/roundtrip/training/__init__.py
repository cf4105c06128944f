"""Fitting the networks of a `RoundtripModel` to data."""

from roundtrip.training.adversarial import AdversarialObjective
from roundtrip.training.likelihood import LikelihoodObjective
from roundtrip.training.loop import TrainingResult, train
from roundtrip.training.validation import BoundValidation, SigmaValidation

__all__ = [
    "AdversarialObjective",
    "BoundValidation",
    "LikelihoodObjective",
    "SigmaValidation",
    "TrainingResult",
    "train",
]
