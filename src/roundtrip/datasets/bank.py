"""BANK: clients of a Portuguese bank and their answers to a telephone campaign."""

from pathlib import Path

import numpy as np
import pandas as pd

from roundtrip.datasets.archives import open_member
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, check_digest, fetch
from roundtrip.datasets.preparation import FloatArray, min_max, spread
from roundtrip.datasets.splits import split_rows
from roundtrip.parameters import check_choice, check_integer

_COLUMNS = (
    "age",
    "job",
    "marital",
    "education",
    "default",
    "balance",
    "housing",
    "loan",
    "contact",
    "day",
    "month",
    "duration",
    "campaign",
    "pdays",
    "previous",
    "poutcome",
    "y",
)
_NUMERIC = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
_ARCHIVE = "bank+marketing.zip"
_DOWNLOADS = (Download(f"https://archive.ics.uci.edu/static/public/222/{_ARCHIVE}"),)
_SHA256 = "a36315b73baf2dc5e0d89d72eac2472a6eedadd17f2380227dbae3206824cdfe"
_NOISE = 0.2


def load_bank(
    *,
    data_home: Folder | None = None,
    random_state: int = 0,
    dequantize: bool = False,
    download: bool = True,
) -> Dataset:
    """Load BANK: 45,211 clients with 17 features, each scaled to [0, 1].

    Categories are numbered from 0 in alphabetical order. The answer ``y`` is one of the 17 columns,
    as the paper's Table S1 requires. All columns are integers; uniform noise of ±0.2 is added to
    them before scaling, as in the paper.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``bank-full.csv``, ``bank-full.csv.gz`` or UCI's zip file; None as in
        `load_arem`.
    random_state : int, default=0
        Seed of the noise and of the split.
    dequantize : bool, default=False
        No effect: the noise of the paper already bounds the likelihood.
    download : bool, default=True
        Whether to download the file if it is in no folder (needs pooch).

    Returns
    -------
    Dataset
        36,621, 4,069 and 4,521 rows, without labels.
    """
    rng = np.random.default_rng(check_integer("random_state", random_state, minimum=0))
    check_choice("dequantize", dequantize, (True, False))
    X = fetch("BANK", _FORMS, _DOWNLOADS, check=_check, data_home=data_home, download=download)
    X = spread(X, _NOISE, rng)
    return Dataset.from_parts(
        "BANK",
        min_max(X),
        split_rows(len(X), rng),
        columns=_COLUMNS,
        latent_dim=8,
        description=(
            "Clients of a bank and their answer to a campaign; categories as numbers, all columns "
            "with uniform noise of ±0.2, then scaled to [0, 1]."
        ),
    )


def _read_csv(path: Path) -> FloatArray:
    with open_member(path, "bank-full.csv") as file:
        types = {name: np.float64 if name in _NUMERIC else str for name in _COLUMNS}
        frame = pd.read_csv(file, sep=";", dtype=types, keep_default_na=False)
    columns = [
        frame[name] if name in _NUMERIC else np.unique(frame[name], return_inverse=True)[1]
        for name in _COLUMNS
    ]
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def _check(X: FloatArray) -> None:
    check_digest(_SHA256, X)


_FORMS = tuple(
    Form((name,), _read_csv) for name in ("bank-full.csv.gz", "bank-full.csv", "bank.zip", _ARCHIVE)
)
