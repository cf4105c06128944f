"""CIFAR-10: 60,000 small photographs of ten kinds of things."""

import hashlib
import io
import pickle
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundtrip.datasets.archives import open_arrays
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, check_digest, fetch
from roundtrip.datasets.splits import draw_validation
from roundtrip.parameters import check_integer

_ARCHIVE = "cifar-10-python.tar.gz"
_MD5 = "c58f30108f718f92721af3b95e74349a"
_DOWNLOADS = (Download(f"https://www.cs.toronto.edu/~kriz/{_ARCHIVE}", _MD5),)
_SUBSET_SHA256 = "3bfa6b1a97446cc8c32d404230554a1508fa6d9a64a56263274f1857391125cf"
_TRAIN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEST_BATCH = "test_batch"
_VALIDATION_ROWS = 5_000
_LABEL_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
_DESCRIPTION = "Photographs of ten kinds of things, 32 by 32 pixels, red, green and blue 0 to 255."


class _Images(NamedTuple):
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


class _Photos(NamedTuple):
    train: _Images
    test: _Images
    validation: _Images | None  # None if it has to be drawn from `train`


def load_cifar10(
    *, data_home: Folder | None = None, random_state: int = 0, download: bool = True
) -> Dataset:
    """Load CIFAR-10: images of shape (32, 32, 3) with values 0 to 255, and their classes.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``cifar-10-python.tar.gz`` (170 MB) or the smaller ``cifar10_subset.npz``; None
        as in `load_arem`.
    random_state : int, default=0
        Seed of the choice of validation images among the 50,000 training images. No effect on the
        subset, whose parts are fixed.
    download : bool, default=True
        Whether to download the file if it is in no folder (needs pooch).

    Returns
    -------
    Dataset
        45,000, 5,000 and 10,000 images; the last are the official test set. The subset has 20,000,
        1,000 and 1,000 images: 2,000 and 100 of each class from the training set, and the first
        thousand of the test set. The description of the data set says which one it is.
    """
    rng = np.random.default_rng(check_integer("random_state", random_state, minimum=0))
    raw = fetch(
        "CIFAR-10", _FORMS, _DOWNLOADS, check=_check, data_home=data_home, download=download
    )
    if raw.validation is None:
        rows, held_out = draw_validation(len(raw.train.labels), _VALIDATION_ROWS, rng)
        train = _Images(raw.train.images[rows], raw.train.labels[rows])
        validation = _Images(raw.train.images[held_out], raw.train.labels[held_out])
        description = _DESCRIPTION
    else:
        train, validation = raw.train, raw.validation
        description = f"{_DESCRIPTION} A subset: 22,000 of the 60,000 images."
    return Dataset(
        "CIFAR-10",
        train.images,
        validation.images,
        raw.test.images,
        train.labels,
        validation.labels,
        raw.test.labels,
        label_names=_LABEL_NAMES,
        latent_dim=100,
        description=description,
    )


def _read_subset(path: Path) -> _Photos:
    with open_arrays(path) as data:
        train, validation, test = (
            _Images(data[f"{part}_x"], data[f"{part}_y"].astype(np.int64))
            for part in ("train", "heldout", "test")
        )
    return _Photos(train, test, validation)


def _read_archive(path: Path) -> _Photos:
    with path.open("rb") as file:
        # Only the published file is unpickled.
        if hashlib.file_digest(file, "md5").hexdigest() != _MD5:
            raise ValueError(f"its md5 checksum is not the published one, {_MD5}")
    return _parse_archive(path)


def _parse_archive(path: Path) -> _Photos:
    with tarfile.open(path, "r:gz") as archive:
        batches = {
            Path(member.name).name: _parse_batch(content.read())
            for member in archive
            if Path(member.name).name in (*_TRAIN_BATCHES, _TEST_BATCH)
            and (content := archive.extractfile(member)) is not None
        }
    parts = [batches[name] for name in _TRAIN_BATCHES]
    train = _Images(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return _Photos(train, batches[_TEST_BATCH], None)


def _parse_batch(content: bytes) -> _Images:
    """Parse a pickle of bytes of shape (rows, 3072), red before green before blue, and labels."""
    batch = _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
    images = np.asarray(batch["data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
    labels = np.asarray(batch["labels"], dtype=np.int64)
    if len(images) != len(labels):
        raise ValueError(f"it has {len(images)} images and {len(labels)} labels in a batch")
    return _Images(np.ascontiguousarray(images.transpose(0, 2, 3, 1)), labels)


def _latin1_bytes(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"unexpected encoding {encoding!r}")
    return text.encode("latin1")


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickle containers, numbers, text and NumPy arrays; anything else could run code."""

    # NumPy renamed this function's module; old pickles have the old name.
    _reconstruct = np.empty(0).__reduce__()[0]
    _allowed: dict[tuple[str, str], Any] = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("_codecs", "encode"): _latin1_bytes,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few functions that pickled arrays need; refuse any other."""
        try:
            return self._allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}") from None


def _check(raw: _Photos) -> None:
    if raw.validation is not None:  # `_read_archive` has already checked the full archive
        check_digest(_SUBSET_SHA256, *raw.train, *raw.validation, *raw.test)


_FORMS = (
    Form((_ARCHIVE,), _read_archive),
    Form(("cifar10_subset.npz",), _read_subset),
)
