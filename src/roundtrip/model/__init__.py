"""The Roundtrip model p(x) = ∫ p(x | z) p(z) dz, eq. (4): networks, prior, observation model.

The observation model of the paper, eq. (3), is in `noise.gaussian`, the integral in `core`.

Equation numbers follow the labels of the arXiv source; where the change of variables is printed as
(1), they are lower by one.
"""

from roundtrip.model.build import build_model
from roundtrip.model.core import RoundtripModel

__all__ = ["RoundtripModel", "build_model"]
