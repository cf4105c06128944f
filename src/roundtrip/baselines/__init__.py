"""Density estimators to compare with, all with the interface of `roundtrip.Roundtrip`."""

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
"""Every baseline by the name it has in tables; each takes `random_state` and has defaults."""

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
