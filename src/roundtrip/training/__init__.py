"""Training of a `RoundtripModel`: objectives, validation and the stages of a fit.

The paper's losses, eq. (13)-(15), are in `adversarial_trainer`, the likelihood bound is in `bound`.

Equation numbers follow the labels of the arXiv source; where the change of variables is printed as
(1), they are lower by one.
"""

from roundtrip.training.adversarial import Adversarial
from roundtrip.training.hybrid import Hybrid
from roundtrip.training.likelihood import Likelihood
from roundtrip.training.objective import Objective
from roundtrip.training.validation import Validation

__all__ = ["Adversarial", "Hybrid", "Likelihood", "Objective", "Validation"]
