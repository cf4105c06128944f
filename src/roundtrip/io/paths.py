"""Checks of the files a user names, before any work is done and without slow imports."""

import os
from collections.abc import Collection
from pathlib import Path

from roundtrip.io.atomic import check_writable

TEXT_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
INPUT_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".npy", ".npz")
OUTPUT_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".npy")


def known_suffix(path: Path, supported: Collection[str]) -> str:
    """Return the suffix of a file, or raise `ValueError` if it is not among those supported.

    Examples
    --------
    >>> known_suffix(Path("rows.CSV.gz"), INPUT_SUFFIXES)
    '.csv.gz'
    """
    for suffix in supported:
        if path.name.lower().endswith(suffix):
            return suffix
    raise ValueError(f"{path} has an unknown format: supported are {', '.join(supported)}")


def check_file(path: Path) -> None:
    """Raise an error that names the file if it does not exist or is a folder."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")


def check_input(path: Path) -> None:
    """Raise the error that `read_table` would raise before it opens the file."""
    known_suffix(path, INPUT_SUFFIXES)
    check_file(path)
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise the error that `write_table` would raise for this path, before any work is done."""
    known_suffix(Path(path), OUTPUT_SUFFIXES)
    check_writable(path)
