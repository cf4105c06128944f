"""HEPMASS: simulated particle collisions, prepared as by Papamakarios et al. (2017)."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from roundtrip.datasets.archives import open_member
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, fetch
from roundtrip.datasets.preparation import FloatArray
from roundtrip.parameters import check_choice, check_integer

_ARCHIVE = "hepmass.zip"
_DOWNLOADS = (Download(f"https://archive.ics.uci.edu/static/public/347/{_ARCHIVE}"),)
# Papamakarios et al. state numbers of rows that are a tenth of each file; presumably the first.
_TRAIN_LINES, _TEST_LINES = 700_000, 350_000
# The header of the training file lacks a name for the last of 27 features. Their reader therefore
# dropped f26 there, and they removed it from the test file.
_FEATURES = tuple(f"f{number}" for number in range(26))
_TRAIN_SIGNALS, _TEST_SIGNALS, _KEPT = 350_136, 174_987, 21
_MOST_REPEATS = 5


class _Signals(NamedTuple):
    train: FloatArray
    test: FloatArray


def load_hepmass(
    *,
    data_home: Folder | None = None,
    random_state: int = 0,
    dequantize: bool = False,
    download: bool = True,
) -> Dataset:
    """Load HEPMASS: 525,123 collisions with a particle of mass 1000, 21 features.

    The preparation is that of Papamakarios et al. (2017), which the paper follows. Rows are those
    of class 1 in the (presumably first) tenth of the source's training and test file. Features are
    standardised by the mean and standard deviation of the training rows. Five features with
    recurring values (the number of jets and four flags) are removed. The last tenth of the training
    rows is the validation part.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``1000_train.csv`` and ``1000_test.csv``, the same with ``.gz``, or UCI's zip
        file, which has 8 GB because it contains four further files; None as in `load_arem`.
    random_state : int, default=0
        No effect: the split is the source's.
    dequantize : bool, default=False
        No effect: no remaining column is rounded.
    download : bool, default=True
        Whether to download the file if it is in no folder (needs pooch).

    Returns
    -------
    Dataset
        315,123, 35,013 and 174,987 rows, without labels.
    """
    check_integer("random_state", random_state, minimum=0)
    check_choice("dequantize", dequantize, (True, False))
    raw = fetch("HEPMASS", _FORMS, _DOWNLOADS, check=_check, data_home=data_home, download=download)
    return _prepare(raw)


def _prepare(raw: _Signals) -> Dataset:
    mean, sd = raw.train.mean(axis=0), raw.train.std(axis=0, ddof=1)
    kept = ~_recurring(raw.train)
    train, test = ((rows[:, kept] - mean[kept]) / sd[kept] for rows in raw)
    n_train = len(train) - len(train) // 10
    return Dataset(
        "HEPMASS",
        train[:n_train],
        train[n_train:],
        test,
        columns=tuple(np.array(_FEATURES)[kept].tolist()),
        latent_dim=8,
        description=(
            "Simulated collisions with a particle of mass 1000, prepared as by Papamakarios et al. "
            "(2017): standardised, features with recurring values removed."
        ),
    )


def _recurring(X: FloatArray) -> np.ndarray:
    """Return which features repeat their smallest value too often, shape (features,)."""
    # The code of Papamakarios et al. should count the most frequent value, but counts the smallest.
    return (X.min(axis=0) == X).sum(axis=0) > _MOST_REPEATS


def _read_csv(train: Path, test: Path | None = None) -> _Signals:
    """Read two files, or one archive that contains both."""
    return _Signals(
        _read_part(train, "1000_train.csv", _TRAIN_LINES),
        _read_part(test or train, "1000_test.csv", _TEST_LINES),
    )


def _read_part(path: Path, name: str, lines: int) -> FloatArray:
    """Read the signals in the first lines: a header, then lines of a class and the features."""
    with open_member(path, name) as file:
        table = np.loadtxt(
            file,
            delimiter=",",
            skiprows=1,
            max_rows=lines,
            usecols=range(1 + len(_FEATURES)),
            ndmin=2,
        )
    return table[table[:, 0] == 1, 1:]


def _check(raw: _Signals) -> None:
    # No checksum of this data set is published. The numbers of signals in the paper's Table S1
    # reveal a file that is incomplete or has another mass.
    rows = (len(raw.train), len(raw.test))
    if rows != (_TRAIN_SIGNALS, _TEST_SIGNALS):
        raise ValueError(
            f"it must have {_TRAIN_SIGNALS} and {_TEST_SIGNALS} rows of class 1 in the first "
            f"{_TRAIN_LINES} and {_TEST_LINES} lines, got {rows[0]} and {rows[1]}"
        )
    kept = int((~_recurring(raw.train)).sum())
    if kept != _KEPT or not all(np.isfinite(part).all() for part in raw):
        raise ValueError(f"it must have {_KEPT} finite features that do not recur, got {kept}")


_FORMS = (
    Form(("1000_train.csv", "1000_test.csv"), _read_csv),
    Form(("1000_train.csv.gz", "1000_test.csv.gz"), _read_csv),
    Form((_ARCHIVE,), _read_csv),
)
