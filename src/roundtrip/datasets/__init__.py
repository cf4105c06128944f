"""The paper's data sets: simulated ones with a known density, and real tables and images."""

from roundtrip.datasets.arem import load_arem
from roundtrip.datasets.bank import load_bank
from roundtrip.datasets.casp import load_casp
from roundtrip.datasets.cifar10 import load_cifar10
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import DatasetDamagedError, DatasetNotFoundError
from roundtrip.datasets.hepmass import load_hepmass
from roundtrip.datasets.mnist import load_mnist
from roundtrip.datasets.odds import load_forestcover, load_mammography, load_shuttle
from roundtrip.datasets.simulated import (
    SimulatedData,
    make_independent_mixture,
    make_involute,
    make_octagon_mixture,
)
from roundtrip.datasets.ypmsd import load_ypmsd

__all__ = [
    "Dataset",
    "DatasetDamagedError",
    "DatasetNotFoundError",
    "SimulatedData",
    "load_arem",
    "load_bank",
    "load_casp",
    "load_cifar10",
    "load_forestcover",
    "load_hepmass",
    "load_mammography",
    "load_mnist",
    "load_shuttle",
    "load_ypmsd",
    "make_independent_mixture",
    "make_involute",
    "make_octagon_mixture",
]
