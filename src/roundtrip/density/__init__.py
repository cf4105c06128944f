"""Log densities of a model with error bars.

The paper's importance sampling, eq. (5), is in `importance`, its closed form, eq. (6)-(12), in
`laplace`. The default method, adaptive importance sampling, is in `adaptive`.

Equation numbers follow the labels of the arXiv source; where the change of variables is printed as
(1), they are lower by one.
"""

from roundtrip.density.estimate import estimate
from roundtrip.density.fitted import FittedDensity
from roundtrip.density.mean import MeanDensity
from roundtrip.density.method import METHODS, Method
from roundtrip.density.result import DensityEstimate
from roundtrip.exceptions import DensityWarning

__all__ = [
    "METHODS",
    "DensityEstimate",
    "DensityWarning",
    "FittedDensity",
    "MeanDensity",
    "Method",
    "estimate",
]
