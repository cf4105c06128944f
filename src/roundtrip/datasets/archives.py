"""Opening files in gzip and zip archives (also zip in zip), and arrays in npz files."""

import gzip
import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import cast

import numpy as np


@contextmanager
def open_member(path: Path, name: str) -> Iterator[io.BufferedIOBase]:
    """Open the file called `name` for reading bytes.

    Parameters
    ----------
    path : Path
        The file itself, the file with ``.gz``, or a zip archive that contains either of them in
        any folder or in an inner zip archive.
    name : str
        Name of the file, without ``.gz``.

    Yields
    ------
    io.BufferedIOBase
        The open file.

    Raises
    ------
    KeyError
        If the zip archive does not contain the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     packed = Path(folder, "bank.zip")
    ...     with zipfile.ZipFile(packed, "w") as archive:
    ...         archive.writestr("bank/names.txt.gz", gzip.compress(b"Ada"))
    ...     with open_member(packed, "names.txt") as file:
    ...         print(file.read())
    b'Ada'
    """
    with ExitStack() as stack:
        if path.suffix == ".zip":
            found = _search(zipfile.ZipFile(path), name, stack)
            if found is None:
                raise KeyError(f"it does not contain {name}")
            yield found
        elif path.suffix == ".gz":
            yield stack.enter_context(gzip.GzipFile(path))
        else:
            yield stack.enter_context(path.open("rb"))


@contextmanager
def open_arrays(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Open an npz file; arrays of Python objects are refused, because they could run code."""
    # If np.load opened a damaged file itself, the file would stay open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        yield arrays


def _search(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> io.BufferedIOBase | None:
    """Open `name` in `archive`, or return None; the stack closes everything opened on the way."""
    stack.enter_context(archive)
    members = archive.namelist()
    for member in members:
        if PurePosixPath(member).name == name:
            return cast(io.BufferedIOBase, stack.enter_context(archive.open(member)))
    for member in members:
        if PurePosixPath(member).name == f"{name}.gz":
            packed = stack.enter_context(archive.open(member))
            return stack.enter_context(gzip.GzipFile(fileobj=packed))
    for member in members:
        if member.endswith(".zip"):
            inner = zipfile.ZipFile(stack.enter_context(archive.open(member)))
            found = _search(inner, name, stack)
            if found is not None:
                return found
    return None
