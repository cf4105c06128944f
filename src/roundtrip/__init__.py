"""Roundtrip: deep generative density estimation with error bars."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roundtrip.classifier import RoundtripClassifier
    from roundtrip.density import DensityEstimate
    from roundtrip.density.proposals import Proposal
    from roundtrip.estimator import Roundtrip
    from roundtrip.exceptions import CheckpointError, DensityWarning, ModelFileError
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
    from roundtrip.training import Adversarial, Hybrid, Likelihood, Validation

__version__ = "0.1.0"

__all__ = [
    "MLP",
    "Adversarial",
    "CheckpointError",
    "Conv",
    "DensityEstimate",
    "DensityWarning",
    "Diagonal",
    "Heteroscedastic",
    "Hybrid",
    "Isotropic",
    "LatentDistribution",
    "Likelihood",
    "Mixture",
    "MixturePrior",
    "ModelFileError",
    "Network",
    "Noise",
    "NormalPrior",
    "ObservationModel",
    "Prior",
    "Proposal",
    "Residual",
    "Roundtrip",
    "RoundtripClassifier",
    "RoundtripDetector",
    "RoundtripModel",
    "Sizes",
    "Validation",
    "__version__",
    "load",
]

_HOMES = {
    "roundtrip.classifier": ("RoundtripClassifier",),
    "roundtrip.density": ("DensityEstimate",),
    "roundtrip.density.proposals": ("Proposal",),
    "roundtrip.estimator": ("Roundtrip",),
    "roundtrip.exceptions": (
        "CheckpointError",
        "DensityWarning",
        "ModelFileError",
    ),
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
    "roundtrip.training": (
        "Adversarial",
        "Hybrid",
        "Likelihood",
        "Validation",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import torch only when a name that needs it is used: `roundtrip --help` is instant."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
