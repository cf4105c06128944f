"""Roundtrip: deep generative density estimation with error bars."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roundtrip.classifier import RoundtripClassifier
    from roundtrip.density import DensityEstimate, DensityWarning
    from roundtrip.estimator import Roundtrip
    from roundtrip.io.model_file import ModelFileError
    from roundtrip.loading import load
    from roundtrip.model.core import RoundtripModel
    from roundtrip.outliers.detector import RoundtripDetector
    from roundtrip.training.checkpoint import CheckpointError

__version__ = "0.1.0"

__all__ = [
    "CheckpointError",
    "DensityEstimate",
    "DensityWarning",
    "ModelFileError",
    "Roundtrip",
    "RoundtripClassifier",
    "RoundtripDetector",
    "RoundtripModel",
    "__version__",
    "load",
]

_HOMES = {
    "CheckpointError": "roundtrip.training.checkpoint",
    "DensityEstimate": "roundtrip.density",
    "DensityWarning": "roundtrip.density",
    "ModelFileError": "roundtrip.io.model_file",
    "Roundtrip": "roundtrip.estimator",
    "RoundtripClassifier": "roundtrip.classifier",
    "RoundtripDetector": "roundtrip.outliers.detector",
    "RoundtripModel": "roundtrip.model.core",
    "load": "roundtrip.loading",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    """Import torch only when a name that needs it is used: `roundtrip --help` is instant."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
