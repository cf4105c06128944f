"""Fitting the networks of a `RoundtripModel` to data."""

from roundtrip.training.adversarial import AdversarialObjective
from roundtrip.training.loop import TrainingResult, train
from roundtrip.training.validation import Validation

__all__ = ["AdversarialObjective", "TrainingResult", "Validation", "train"]
