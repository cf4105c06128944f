"""The Roundtrip model: networks, prior and observation model."""

from roundtrip.model.build import build_model
from roundtrip.model.core import RoundtripModel

__all__ = ["RoundtripModel", "build_model"]
