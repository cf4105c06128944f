"""Opening files whatever they are packed in: gzip, zip, a zip in a zip, or arrays in an npz."""

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
        That file itself, the same with ``.gz``, or a zip that contains either of them, in any of
        its folders or in a zip of its own.

    Raises
    ------
    KeyError
        If a zip does not contain it.

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
                raise KeyError(f"there is no {name} in it")
            yield found
        elif path.suffix == ".gz":
            yield stack.enter_context(gzip.GzipFile(path))
        else:
            yield stack.enter_context(path.open("rb"))


@contextmanager
def open_arrays(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Open an npz file; arrays of objects, which could run code, are refused."""
    # A damaged file that np.load opened by itself would stay open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        yield arrays


def _search(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> io.BufferedIOBase | None:
    """`name` in `archive`, opened; everything opened on the way is closed with the stack."""
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
