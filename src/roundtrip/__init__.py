"""Roundtrip: deep generative density estimation with error bars."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roundtrip.classifier import RoundtripClassifier
    from roundtrip.data import Schema
    from roundtrip.density import DensityEstimate, MeanDensity, estimate
    from roundtrip.density.class_posterior import ClassPosterior
    from roundtrip.density.proposals import Proposal
    from roundtrip.estimator import Roundtrip
    from roundtrip.exceptions import CheckpointError, DensityWarning, ModelFileError
    from roundtrip.imputer import RoundtripImputer
    from roundtrip.loading import load
    from roundtrip.model import RoundtripModel
    from roundtrip.model.networks import MLP, Conv, Network, Residual, Sizes
    from roundtrip.model.noise import (
        Diagonal,
        Heteroscedastic,
        Isotropic,
        Mixture,
        Noise,
        ObservationModel,
    )
    from roundtrip.model.prior import LatentDistribution, MixturePrior, NormalPrior, Prior
    from roundtrip.outliers import RoundtripDetector
    from roundtrip.outliers.explanation import Explanation
    from roundtrip.parameters import Component
    from roundtrip.training import Adversarial, Hybrid, Likelihood, Objective, Validation
    from roundtrip.training.objective import FitOptions

__version__ = "0.2.0.dev0"

__all__ = [
    "MLP",
    "Adversarial",
    "CheckpointError",
    "ClassPosterior",
    "Component",
    "Conv",
    "DensityEstimate",
    "DensityWarning",
    "Diagonal",
    "Explanation",
    "FitOptions",
    "Heteroscedastic",
    "Hybrid",
    "Isotropic",
    "LatentDistribution",
    "Likelihood",
    "MeanDensity",
    "Mixture",
    "MixturePrior",
    "ModelFileError",
    "Network",
    "Noise",
    "NormalPrior",
    "Objective",
    "ObservationModel",
    "Prior",
    "Proposal",
    "Residual",
    "Roundtrip",
    "RoundtripClassifier",
    "RoundtripDetector",
    "RoundtripImputer",
    "RoundtripModel",
    "Schema",
    "Sizes",
    "Validation",
    "__version__",
    "estimate",
    "load",
]

_HOMES = {
    "roundtrip.classifier": ("RoundtripClassifier",),
    "roundtrip.data": ("Schema",),
    "roundtrip.density": (
        "DensityEstimate",
        "MeanDensity",
        "estimate",
    ),
    "roundtrip.density.class_posterior": ("ClassPosterior",),
    "roundtrip.density.proposals": ("Proposal",),
    "roundtrip.estimator": ("Roundtrip",),
    "roundtrip.exceptions": (
        "CheckpointError",
        "DensityWarning",
        "ModelFileError",
    ),
    "roundtrip.imputer": ("RoundtripImputer",),
    "roundtrip.loading": ("load",),
    "roundtrip.model": ("RoundtripModel",),
    "roundtrip.model.networks": (
        "Conv",
        "MLP",
        "Network",
        "Residual",
        "Sizes",
    ),
    "roundtrip.model.noise": (
        "Diagonal",
        "Heteroscedastic",
        "Isotropic",
        "Mixture",
        "Noise",
        "ObservationModel",
    ),
    "roundtrip.model.prior": (
        "LatentDistribution",
        "MixturePrior",
        "NormalPrior",
        "Prior",
    ),
    "roundtrip.outliers": ("RoundtripDetector",),
    "roundtrip.outliers.explanation": ("Explanation",),
    "roundtrip.parameters": ("Component",),
    "roundtrip.training": (
        "Adversarial",
        "Hybrid",
        "Likelihood",
        "Objective",
        "Validation",
    ),
    "roundtrip.training.objective": ("FitOptions",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import torch only when a name that needs it is used: `roundtrip --help` is instant."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
