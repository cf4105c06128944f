"""`Method`: how log densities are computed."""

from dataclasses import dataclass

from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.density.proposals import LARGEST_DF, SMALLEST_DF
from roundtrip.parameters import check_choice, check_integer, check_number

METHODS = ("adaptive", "importance", "laplace")

LARGEST_TOL = 1e100
"""Its square is a number in float64."""


@dataclass(frozen=True)
class Method:
    """Method of computing densities, with its settings.

    Attributes
    ----------
    name : {"adaptive", "importance", "laplace"}
        "adaptive" samples until the standard error is within `tol`, "importance" is eq. (5) with
        the paper's proposal, "laplace" is the closed form of eq. (12).
    tol : float
        Standard error of each log density, in nats, at which sampling stops (adaptive).
    max_evaluations : int
        Largest number of evaluations of G per row (adaptive).
    n_samples : int
        Draws of z per row (importance).
    scale, df : float
        Scale and degrees of freedom of the Student-t proposal at H(x) (importance).
    """

    name: str = "adaptive"
    tol: float = 0.05
    max_evaluations: int = DEFAULT_EVALUATIONS
    n_samples: int = 40_000
    scale: float = 0.5
    df: float = 1.0

    def __post_init__(self) -> None:
        check_choice("method", self.name, METHODS)
        check_number("tol", self.tol, above=0, below=LARGEST_TOL)
        check_integer("max_evaluations", self.max_evaluations, minimum=1)
        check_integer("n_samples", self.n_samples, minimum=1)
        check_number("scale", self.scale, above=0)
        check_number("df", self.df, above=SMALLEST_DF, below=LARGEST_DF)
