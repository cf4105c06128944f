"""Data sets with a known density, to check an estimate against the truth."""

from roundtrip.datasets.simulated import (
    SimulatedData,
    make_independent_mixture,
    make_involute,
    make_octagon_mixture,
)

__all__ = [
    "SimulatedData",
    "make_independent_mixture",
    "make_involute",
    "make_octagon_mixture",
]
