"""MNIST: 70,000 handwritten digits."""

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roundtrip.datasets.archives import open_arrays, open_member
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, check_digest, fetch
from roundtrip.datasets.splits import draw_validation
from roundtrip.parameters import check_integer

# The original site asks programs not to download from it; torchvision uses this mirror.
_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_DOWNLOADS = (
    Download(_MIRROR + "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    Download(_MIRROR + "train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
    Download(_MIRROR + "t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
    Download(_MIRROR + "t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
)
_SHA256 = "25c98f992c005963b7428e1f38418b233c9b286cc403519287eb8063f0bcfe07"
_VALIDATION_ROWS = 10_000
_UNSIGNED_BYTE = 0x08


class _Digits(NamedTuple):
    train: NDArray[np.uint8]
    train_labels: NDArray[np.uint8]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]


def load_mnist(
    *, data_home: Folder | None = None, random_state: int = 0, download: bool = True
) -> Dataset:
    """Load MNIST: images of shape (28, 28, 1) with values 0 to 255, and their digits as labels.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``mnist.npz`` or the four original files (``train-images-idx3-ubyte`` and so
        on, also with ``.gz``); None as in `load_arem`.
    random_state : int, default=0
        Seed of the choice of validation images among the 60,000 training images.
    download : bool, default=True
        Whether to download the files if they are in no folder (needs pooch).

    Returns
    -------
    Dataset
        50,000, 10,000 and 10,000 images; the last are the official test set.
    """
    rng = np.random.default_rng(check_integer("random_state", random_state, minimum=0))
    raw = fetch("MNIST", _FORMS, _DOWNLOADS, check=_check, data_home=data_home, download=download)
    train, validation = draw_validation(len(raw.train), _VALIDATION_ROWS, rng)
    images, labels = raw.train[..., None], raw.train_labels.astype(np.int64)
    return Dataset(
        "MNIST",
        images[train],
        images[validation],
        raw.test[..., None],
        labels[train],
        labels[validation],
        raw.test_labels.astype(np.int64),
        label_names=tuple("0123456789"),
        latent_dim=100,
        description="Images of handwritten digits, 28 by 28 grey values from 0 to 255.",
    )


def _read_compact(path: Path) -> _Digits:
    with open_arrays(path) as data:
        return _Digits(data["train_x"], data["train_y"], data["test_x"], data["test_y"])


def _read_originals(*paths: Path) -> _Digits:
    return _Digits(*(_read_idx(path) for path in paths))


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an IDX file: two zero bytes, type, number of dimensions, big-endian sizes, values."""
    with open_member(path, path.name.removesuffix(".gz")) as file:
        content = file.read()
    zeros, kind, n_dims = struct.unpack_from(">HBB", content)
    if zeros != 0 or kind != _UNSIGNED_BYTE:
        raise ValueError("it does not begin like an IDX file of bytes")
    shape = struct.unpack_from(f">{n_dims}I", content, 4)
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_dims)
    return values.reshape(shape).copy()  # the memory of the buffer is read-only


def _check(raw: _Digits) -> None:
    check_digest(_SHA256, *raw)


_NAMES = tuple(item.name for item in _DOWNLOADS)
_FORMS = (
    Form(("mnist.npz",), _read_compact),
    Form(_NAMES, _read_originals),
    Form(tuple(name.removesuffix(".gz") for name in _NAMES), _read_originals),
)
