"""Finding the files of a data set in a folder of the user, in the cache or on the internet."""

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from roundtrip.io.atomic import atomic_write
from roundtrip.parameters import check_choice

FOLDER_VARIABLE = "ROUNDTRIP_DATA"
"""Environment variable that names a folder with data files."""

Folder = str | os.PathLike[str]
T = TypeVar("T")
_TIMEOUT = 30  # seconds without a response of the server
_CHUNK_BYTES = 2**20
_log = logging.getLogger(__name__)


class DatasetNotFoundError(FileNotFoundError):
    """A data set is in no folder and can't be downloaded; the message says where to get it."""


class DatasetDamagedError(ValueError):
    """A file is not the published one: it is incomplete, altered or another version."""


@dataclass(frozen=True)
class Form(Generic[T]):
    """One of the file formats of a data set.

    Attributes
    ----------
    names : tuple of str
        Names of the files.
    read : callable
        Reads the files; takes their paths in the order of `names`. It may raise any exception if a
        file is damaged.
    """

    names: tuple[str, ...]
    read: Callable[..., T]


@dataclass(frozen=True)
class Download:
    """A public file.

    Attributes
    ----------
    url : str
        Its address.
    md5 : str or None
        Its published md5 checksum; None if there is none.
    """

    url: str
    md5: str | None = None

    @property
    def name(self) -> str:
        """File name, the last part of the address."""
        return self.url.rsplit("/", 1)[1]


def fetch(
    dataset: str,
    forms: Sequence[Form[T]],
    downloads: Sequence[Download],
    *,
    check: Callable[[T], None],
    data_home: Folder | None,
    download: bool,
) -> T:
    """Read a data set from the user's folder, the cache or the internet, in this order.

    Parameters
    ----------
    dataset : str
        Name of the data set, for messages.
    forms : sequence of Form
        Formats to look for, the preferred one first. The names of all downloads must be those of
        one format.
    downloads : sequence of Download
        The public files.
    check : callable
        Raises `ValueError` unless the data are complete and unaltered.
    data_home : str, os.PathLike or None
        The user's folder; None means the folder that ``ROUNDTRIP_DATA`` names, if any.
    download : bool
        Whether to download the files if neither folder has them.

    Returns
    -------
    object
        The data, as the format's `read` returns them.

    Raises
    ------
    FileNotFoundError
        If the user's folder doesn't exist.
    DatasetNotFoundError
        If the files are in neither folder and can't be downloaded.
    DatasetDamagedError
        If a file is not the published one.
    """
    check_choice("download", download, (True, False))
    home = _home(data_home)
    cache = cache_folder()
    for folder in (home, cache):
        found = _find(folder, forms) if folder is not None else None
        if found is not None:
            return _read(dataset, *found, check, downloads)
    if not download:
        raise _not_found(dataset, downloads, home or cache, "downloading is switched off")
    if cache is None:
        reason = "downloading needs pooch: pip install 'roundtrip[datasets]'"
        raise _not_found(dataset, downloads, home, reason)
    new = _download_all(dataset, downloads, cache)
    try:
        found = _find(cache, forms)
        assert found is not None
        return _read(dataset, *found, check, downloads)
    except DatasetDamagedError as error:
        for path in new:  # otherwise the next call would find the files and fail as well
            path.unlink(missing_ok=True)
        raise DatasetDamagedError(f"{error} (it was just downloaded and was not kept)") from error


def digest(*arrays: np.ndarray) -> str:
    """Return the sha256 of the arrays' shapes and values, independent of their memory layout.

    Integers are converted to int64 and floats to float64; uint8 stays uint8.

    Examples
    --------
    >>> digest(np.arange(3, dtype=np.int8)) == digest(np.arange(3))
    True
    >>> digest(np.arange(4)) == digest(np.arange(4).reshape(2, 2))
    False
    """
    total = hashlib.sha256()
    for array in arrays:
        kind = {"u": "<u1" if array.dtype == np.uint8 else "<i8", "i": "<i8", "f": "<f8"}
        total.update(repr(array.shape).encode())
        total.update(np.ascontiguousarray(array, dtype=kind[array.dtype.kind]).data)
    return total.hexdigest()


def check_digest(expected: str, *arrays: np.ndarray) -> None:
    """Raise `ValueError` unless `digest` of the arrays is `expected`."""
    if digest(*arrays) != expected:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"its values are not the published ones (shapes {shapes})")


def cache_folder() -> Path | None:
    """Return the folder of downloaded files, which pooch determines; None without pooch."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("roundtrip"))


def _home(data_home: Folder | None) -> Path | None:
    """Return the user's folder, which must exist, or None if the user names none."""
    if data_home is not None:
        name, value = "data_home", os.fspath(data_home)
    else:
        name, value = f"the environment variable {FOLDER_VARIABLE}", os.getenv(FOLDER_VARIABLE, "")
        if not value:
            return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{name} must be an existing folder, got {value!r}")
    return folder


def _find(folder: Path, forms: Sequence[Form[T]]) -> tuple[Form[T], list[Path]] | None:
    for form in forms:
        paths = [folder / name for name in form.names]
        if all(path.is_file() for path in paths):
            return form, paths
    return None


def _read(
    dataset: str,
    form: Form[T],
    paths: list[Path],
    check: Callable[[T], None],
    downloads: Sequence[Download],
) -> T:
    try:
        data = form.read(*paths)
        check(data)
    except (MemoryError, PermissionError):
        raise
    except OSError as error:
        if error.errno is not None:  # errors of the file system have a number, gzip's have none
            raise
        raise _damaged(dataset, paths, error, downloads) from error
    except Exception as error:  # every parser has its own kinds of error for a damaged file
        raise _damaged(dataset, paths, error, downloads) from error
    return data


def _damaged(
    dataset: str, paths: list[Path], error: Exception, downloads: Sequence[Download]
) -> DatasetDamagedError:
    files = ", ".join(map(str, paths))
    reason = error.args[0] if isinstance(error, KeyError) else error  # str(KeyError) adds quotes
    return DatasetDamagedError(
        f"{files}: not the {dataset} data as published: {str(reason).rstrip('.')}. "
        f"Get {_where(downloads)} instead"
    )


def _download_all(dataset: str, downloads: Sequence[Download], cache: Path) -> list[Path]:
    """Download the files that the cache lacks; return the paths of the new files."""
    new = []
    for item in downloads:
        path = cache / item.name
        if not path.exists():
            try:
                cache.mkdir(parents=True, exist_ok=True)
                _download(item, path)
            except DatasetDamagedError:
                raise
            except Exception as error:  # requests and the file system have many kinds of error
                reason = f"the download failed ({type(error).__name__}: {error})"
                raise _not_found(dataset, downloads, cache, reason) from error
            new.append(path)
    return new


def _download(item: Download, path: Path) -> None:
    import pooch

    _log.info("downloading %s to %s", item.url, path)
    with atomic_write(path) as temporary:
        get: Any = pooch.HTTPDownloader(timeout=_TIMEOUT, chunk_size=_CHUNK_BYTES)
        get(item.url, str(temporary), None)
        if item.md5 is not None and pooch.file_hash(str(temporary), alg="md5") != item.md5:
            raise DatasetDamagedError(
                f"{item.url}: the md5 checksum of the file is not the published one, {item.md5}. "
                "The download is incomplete or the file was altered; it was not kept"
            )


def _not_found(
    dataset: str, downloads: Sequence[Download], folder: Path | None, reason: str
) -> DatasetNotFoundError:
    into = "a folder" if folder is None else str(folder)
    return DatasetNotFoundError(
        f"there are no files of the {dataset} data, and {reason}. Get {_where(downloads)}; put it "
        f"into {into}, or into any folder that data_home= or the environment variable "
        f"{FOLDER_VARIABLE} names"
    )


def _where(downloads: Sequence[Download]) -> str:
    return ", ".join(f"{item.name} from {item.url}" for item in downloads)
