"""The Roundtrip model p(x) = ∫ p(x | z) p(z) dz, eq. (4): networks, prior, observation model.

The observation model of the paper, eq. (3), is in `noise.gaussian`.
"""

from roundtrip.model.build import build_model
from roundtrip.model.core import RoundtripModel

__all__ = ["RoundtripModel", "build_model"]
