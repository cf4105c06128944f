"""Observation models p(x | z): how data scatters around the manifold that G draws."""

from roundtrip.noise.base import LARGEST_SIGMA, SMALLEST_SIGMA, ObservationModel
from roundtrip.noise.gaussian import (
    ConstantGaussian,
    HeteroscedasticGaussian,
    isotropic_log_prob,
)
from roundtrip.noise.mixture import MixtureNoise

__all__ = [
    "LARGEST_SIGMA",
    "SMALLEST_SIGMA",
    "ConstantGaussian",
    "HeteroscedasticGaussian",
    "MixtureNoise",
    "ObservationModel",
    "isotropic_log_prob",
]
