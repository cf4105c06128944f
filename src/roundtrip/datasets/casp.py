"""CASP: physicochemical properties of protein structures."""

from pathlib import Path

import numpy as np

from roundtrip.datasets.archives import open_arrays, open_member
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, check_digest, fetch
from roundtrip.datasets.preparation import FloatArray, min_max, spread
from roundtrip.datasets.splits import split_rows
from roundtrip.parameters import check_choice, check_integer

_COLUMNS = tuple(f"F{number}" for number in range(1, 10))
_ARCHIVE = "physicochemical+properties+of+protein+tertiary+structure.zip"
_DOWNLOADS = (Download(f"https://archive.ics.uci.edu/static/public/265/{_ARCHIVE}"),)
_SHA256 = "79b9e7507b3a7aece843165d3b2a24de97ca074ab0adb7ac04a6d3b5bafa711a"
_COUNT = _COLUMNS.index("F8")


def load_casp(
    *,
    data_home: Folder | None = None,
    random_state: int = 0,
    dequantize: bool = False,
    download: bool = True,
) -> Dataset:
    """Load CASP: 45,730 rows of the 9 features F1 to F9, each scaled to [0, 1].

    The target of the regression task, RMSD, is left out, as in the paper.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``casp.npz``, ``CASP.csv`` or UCI's zip file; None as in `load_arem`.
    random_state : int, default=0
        Seed of the noise and of the split.
    dequantize : bool, default=False
        Whether to spread F8, the only column of integers, evenly over ±0.5 before scaling.
        Otherwise the likelihood of this column has no upper bound.
    download : bool, default=True
        Whether to download the file if it is in no folder (needs pooch).

    Returns
    -------
    Dataset
        37,042, 4,115 and 4,573 rows, without labels.
    """
    rng = np.random.default_rng(check_integer("random_state", random_state, minimum=0))
    check_choice("dequantize", dequantize, (True, False))
    X = fetch("CASP", _FORMS, _DOWNLOADS, check=_check, data_home=data_home, download=download)
    noisy = spread(X, 0.5, rng, columns=[_COUNT])  # always, so that the split is the same
    X = noisy if dequantize else X
    return Dataset.from_parts(
        "CASP",
        min_max(X),
        split_rows(len(X), rng),
        columns=_COLUMNS,
        latent_dim=5,
        description="Physicochemical properties of protein structures, scaled to [0, 1].",
    )


def _read_compact(path: Path) -> FloatArray:
    with open_arrays(path) as data:
        return data["X"].astype(np.float64)


def _read_csv(path: Path) -> FloatArray:
    with open_member(path, "CASP.csv") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
    return table[:, 1:]  # without RMSD


def _check(X: FloatArray) -> None:
    check_digest(_SHA256, X)


_FORMS = (
    Form(("casp.npz",), _read_compact),
    Form(("CASP.csv",), _read_csv),
    Form((_ARCHIVE,), _read_csv),
)
