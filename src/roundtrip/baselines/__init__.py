"""Other density estimators for comparison, with the interface of `roundtrip.Roundtrip`."""

from collections.abc import Callable

from roundtrip.baselines.base import DensityBaseline
from roundtrip.baselines.flows import MADE, MAF, NSF, RealNVP
from roundtrip.baselines.kde import KDE
from roundtrip.baselines.mixture import GaussianMixtureBaseline

BASELINES: dict[str, Callable[..., DensityBaseline]] = {
    "KDE": KDE,
    "Gaussian mixture": GaussianMixtureBaseline,
    "MADE": MADE,
    "RealNVP": RealNVP,
    "MAF": MAF,
    "NSF": NSF,
}
"""Baseline classes by their name in tables; all take `random_state` and have defaults."""

__all__ = [
    "BASELINES",
    "KDE",
    "MADE",
    "MAF",
    "NSF",
    "DensityBaseline",
    "GaussianMixtureBaseline",
    "RealNVP",
]
