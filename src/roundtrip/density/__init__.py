"""From a model and points to log densities with error bars."""

from roundtrip.density.estimate import METHODS, Method, estimate
from roundtrip.density.fitted import FittedDensity
from roundtrip.density.result import DensityEstimate
from roundtrip.exceptions import DensityWarning

__all__ = [
    "METHODS",
    "DensityEstimate",
    "DensityWarning",
    "FittedDensity",
    "Method",
    "estimate",
]
