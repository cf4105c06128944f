"""From a model and points to log densities with error bars."""

from roundtrip.density.estimate import METHODS, estimate
from roundtrip.density.result import DensityEstimate, DensityWarning

__all__ = ["METHODS", "DensityEstimate", "DensityWarning", "estimate"]
