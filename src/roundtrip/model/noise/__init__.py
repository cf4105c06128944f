"""Observation models p(x | z): how data scatters around the manifold that G draws."""

from roundtrip.model.noise.base import LARGEST_SIGMA, SMALLEST_SIGMA, ObservationModel
from roundtrip.model.noise.gaussian import (
    ConstantGaussian,
    HeteroscedasticGaussian,
    isotropic_log_prob,
)
from roundtrip.model.noise.mixture import MixtureNoise
from roundtrip.model.noise.unseen import Unseen

__all__ = [
    "LARGEST_SIGMA",
    "SMALLEST_SIGMA",
    "ConstantGaussian",
    "HeteroscedasticGaussian",
    "MixtureNoise",
    "ObservationModel",
    "Unseen",
    "isotropic_log_prob",
]
