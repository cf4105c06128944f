"""The paper's three simulations."""

from collections.abc import Callable
from dataclasses import dataclass

from roundtrip.datasets import (
    SimulatedData,
    make_independent_mixture,
    make_involute,
    make_octagon_mixture,
)

ROWS, TEST_ROWS = 20_000, 2_000
"""The paper's 20,000 points, a tenth of them held out."""

QUICK_ROWS, QUICK_TEST_ROWS = 3_000, 200

MIXTURE_SD = 0.1
"""The paper prints 0.5, at which the modes merge; its figure and the authors' code use 0.1."""

MIXTURE = f"mixture, sd {MIXTURE_SD}"


@dataclass(frozen=True)
class Simulation:
    """A distribution and the square from -reach to reach in which it is shown."""

    make: Callable[[int, int], SimulatedData]
    reach: float


SIMULATIONS = {
    MIXTURE: Simulation(
        lambda rows, seed: make_independent_mixture(rows, sd=MIXTURE_SD, random_state=seed), 1.5
    ),
    "octagon": Simulation(lambda rows, seed: make_octagon_mixture(rows, random_state=seed), 5.5),
    "involute": Simulation(lambda rows, seed: make_involute(rows, random_state=seed), 7.5),
}


def sizes(*, quick: bool) -> tuple[int, int]:
    """Number of rows, and of held-out rows among them.

    >>> sizes(quick=False)
    (20000, 2000)
    """
    return (QUICK_ROWS, QUICK_TEST_ROWS) if quick else (ROWS, TEST_ROWS)
