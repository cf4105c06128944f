"""Observation models p(x | z): the paper's Gaussian, eq. (3), and more flexible ones."""

from roundtrip.model.noise.base import LARGEST_SIGMA, SMALLEST_SIGMA, Noise, ObservationModel
from roundtrip.model.noise.gaussian import (
    ConstantGaussian,
    Diagonal,
    Heteroscedastic,
    HeteroscedasticGaussian,
    Isotropic,
    isotropic_log_prob,
)
from roundtrip.model.noise.limited import Limit, Limited
from roundtrip.model.noise.mixed import MixedNoise
from roundtrip.model.noise.mixture import Mixture, MixtureNoise
from roundtrip.model.noise.observed import Observed
from roundtrip.model.noise.unseen import Unseen

__all__ = [
    "LARGEST_SIGMA",
    "SMALLEST_SIGMA",
    "ConstantGaussian",
    "Diagonal",
    "Heteroscedastic",
    "HeteroscedasticGaussian",
    "Isotropic",
    "Limit",
    "Limited",
    "MixedNoise",
    "Mixture",
    "MixtureNoise",
    "Noise",
    "ObservationModel",
    "Observed",
    "Unseen",
    "isotropic_log_prob",
]
