"""YPMSD: timbre of half a million songs (YearPredictionMSD)."""

from pathlib import Path

import numpy as np

from roundtrip.datasets.archives import open_member
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, fetch
from roundtrip.datasets.preparation import FloatArray, min_max
from roundtrip.datasets.splits import split_rows
from roundtrip.parameters import check_choice, check_integer

_COLUMNS = (
    *(f"timbre_average_{number}" for number in range(1, 13)),
    *(f"timbre_covariance_{number}" for number in range(1, 79)),
)
_ARCHIVE = "yearpredictionmsd.zip"
_DOWNLOADS = (Download(f"https://archive.ics.uci.edu/static/public/203/{_ARCHIVE}"),)
_ROWS = 515_345


def load_ypmsd(
    *,
    data_home: Folder | None = None,
    random_state: int = 0,
    dequantize: bool = False,
    download: bool = True,
) -> Dataset:
    """Load YPMSD: 515,345 songs with 90 features of their timbre, each scaled to [0, 1].

    The target of the regression task, the year, is left out, as in the paper.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``YearPredictionMSD.txt``, ``YearPredictionMSD.txt.zip`` or UCI's
        ``yearpredictionmsd.zip`` (200 MB); None as in `load_arem`.
    random_state : int, default=0
        Seed of the split.
    dequantize : bool, default=False
        No effect: no column is rounded.
    download : bool, default=True
        Whether to download the file if it is in no folder (needs pooch).

    Returns
    -------
    Dataset
        417,430, 46,381 and 51,534 rows, without labels.
    """
    rng = np.random.default_rng(check_integer("random_state", random_state, minimum=0))
    check_choice("dequantize", dequantize, (True, False))
    X = fetch("YPMSD", _FORMS, _DOWNLOADS, check=_check, data_home=data_home, download=download)
    return Dataset.from_parts(
        "YPMSD",
        min_max(X),
        split_rows(len(X), rng),
        columns=_COLUMNS,
        latent_dim=20,
        description="Averages and covariances of the timbre of songs, scaled to [0, 1].",
    )


def _read_text(path: Path) -> FloatArray:
    """Read lines of a year and 90 features, without a header."""
    with open_member(path, "YearPredictionMSD.txt") as file:
        return np.loadtxt(file, delimiter=",", ndmin=2)[:, 1:]


def _check(X: FloatArray) -> None:
    # No checksum of this data set is published; the shape reveals an incomplete file.
    expected = (_ROWS, len(_COLUMNS))
    if X.shape != expected or not np.isfinite(X).all():
        raise ValueError(f"it must have {expected} finite features, got {X.shape}")


_FORMS = tuple(
    Form((name,), _read_text)
    for name in ("YearPredictionMSD.txt", "YearPredictionMSD.txt.zip", _ARCHIVE)
)
