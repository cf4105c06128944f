"""AReM: radio signals between sensors worn by a person in seven activities."""

import re
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundtrip.datasets.archives import open_arrays
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, check_digest, fetch
from roundtrip.datasets.preparation import FloatArray, min_max, spread
from roundtrip.datasets.splits import split_groups, split_rows
from roundtrip.parameters import check_choice, check_integer

_COLUMNS = ("avg_rss12", "var_rss12", "avg_rss13", "var_rss13", "avg_rss23", "var_rss23")
_ACTIVITIES = ("bending1", "bending2", "cycling", "lying", "sitting", "standing", "walking")
_ARCHIVE = "activity+recognition+system+based+on+multisensor+data+fusion+arem.zip"
_DOWNLOADS = (Download(f"https://archive.ics.uci.edu/static/public/366/{_ARCHIVE}"),)
_SHA256 = "9641a9d7dee985593e30f62564b32cf809f826927b803c43f4cf06cbd5cc2598"
_HALF_STEP = 0.005  # values have two decimals


class _Recordings(NamedTuple):
    X: FloatArray
    activity: NDArray[np.int64]
    recording: NDArray[np.int64]


def load_arem(
    *,
    data_home: Folder | None = None,
    random_state: int = 0,
    dequantize: bool = False,
    download: bool = True,
    split: str = "rows",
) -> Dataset:
    """Load AReM: 42,239 rows of 6 signal strengths and variations, each column scaled to [0, 1].

    A row is a quarter of a second of one of 88 recordings, each of one activity. The paper treats
    rows as independent and splits them at random. But rows of a recording resemble each other, and
    six recordings occur twice, so test rows often equal training rows; ``split="recordings"``
    avoids both.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``arem.npz`` or UCI's zip file. None means the folder that the environment
        variable ``ROUNDTRIP_DATA`` names, if any. If the files are not there, the cache of earlier
        downloads is searched.
    random_state : int, default=0
        Seed of the noise and of the split.
    dequantize : bool, default=False
        Whether to spread the values, which have two decimals, evenly over their rounding steps
        (±0.005) before scaling. Otherwise the likelihood of these columns has no upper bound.
    download : bool, default=True
        Whether to download the files if neither folder has them (needs pooch).
    split : {"rows", "recordings"}, default="rows"
        Whether to divide rows at random (34,215, 3,801 and 4,223 rows, as in the paper) or whole
        recordings, with equal ones in the same part (similar sizes).

    Returns
    -------
    Dataset
        Labels are the 7 activities, groups the recordings 0 to 87.

    Raises
    ------
    DatasetNotFoundError
        If the files are in neither folder and can't be downloaded.
    DatasetDamagedError
        If a file is not the published one.

    Examples
    --------
    >>> load_arem(data_home="no/such/folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: data_home must be an existing folder, got 'no/such/folder'
    """
    rng = np.random.default_rng(check_integer("random_state", random_state, minimum=0))
    check_choice("dequantize", dequantize, (True, False))
    check_choice("split", split, ("rows", "recordings"))
    raw = fetch("AReM", _FORMS, _DOWNLOADS, check=_check, data_home=data_home, download=download)
    noisy = spread(raw.X, _HALF_STEP, rng)  # always drawn, so that the split is the same
    X = noisy if dequantize else raw.X
    parts = split_rows(len(X), rng) if split == "rows" else split_groups(_merge_equal(raw), rng)
    return Dataset.from_parts(
        "AReM",
        min_max(X),
        parts,
        labels=raw.activity,
        groups=raw.recording,
        columns=_COLUMNS,
        label_names=_ACTIVITIES,
        latent_dim=3,
        description=(
            "Means and variances of radio signals between three sensors worn by a person in seven "
            "activities, scaled to [0, 1]."
        ),
    )


def _merge_equal(raw: _Recordings) -> NDArray[np.int64]:
    """Return the recording of each row; copies of an earlier recording get its number."""
    first: dict[bytes, int] = {}
    merged = raw.recording.copy()
    for recording in np.unique(raw.recording):
        rows = raw.recording == recording
        merged[rows] = first.setdefault(raw.X[rows].tobytes(), int(recording))
    return merged


def _read_compact(path: Path) -> _Recordings:
    with open_arrays(path) as data:
        y, recording = data["y"].astype(np.int64), data["file_id"].astype(np.int64)
        return _Recordings(data["X"].astype(np.float64), y, recording)


def _read_archive(path: Path) -> _Recordings:
    """Read UCI's zip file: ``bending1/dataset1.csv`` and so on, at any depth."""
    pattern = re.compile(rf"(?:^|/)({'|'.join(_ACTIVITIES)})/dataset(\d+)\.csv$")
    with zipfile.ZipFile(path) as archive:
        matches = [(pattern.search(name), name) for name in archive.namelist()]
        members = sorted((m[1], int(m[2]), name) for m, name in matches if m is not None)
        tables = [_parse(archive.read(name).decode()) for _, _, name in members]
    lengths = [len(table) for table in tables]
    activity = [_ACTIVITIES.index(name) for name, _, _ in members]
    return _Recordings(
        np.concatenate(tables),
        np.repeat(np.array(activity, dtype=np.int64), lengths),
        np.repeat(np.arange(len(members), dtype=np.int64), lengths),
    )


def _parse(text: str) -> FloatArray:
    """Parse one recording: comment lines, then lines of a time and six values.

    Most files separate values by commas, some by blanks.
    """
    lines = [line.replace(",", " ").split() for line in text.splitlines()]
    rows = [[float(word) for word in line[1:]] for line in lines if line and line[0][0] != "#"]
    return np.array(rows, dtype=np.float64).reshape(-1, len(_COLUMNS))


def _check(raw: _Recordings) -> None:
    check_digest(_SHA256, *raw)


_FORMS = (
    Form(("arem.npz",), _read_compact),
    Form((_ARCHIVE,), _read_archive),
    Form(("AReM.zip",), _read_archive),
    Form(("arem.zip",), _read_archive),
)
