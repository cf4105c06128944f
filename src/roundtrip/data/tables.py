"""Reading and writing tables and images in csv, tsv, parquet, npy and npz files."""

import csv
import gzip
import os
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO, TypeVar

import numpy as np
import pandas as pd
import pyarrow.csv

from roundtrip.exceptions import warn_user
from roundtrip.io.atomic import atomic_write
from roundtrip.io.paths import (
    INPUT_SUFFIXES,
    OUTPUT_SUFFIXES,
    TEXT_SUFFIXES,
    check_input,
    known_suffix,
)

Table = pd.DataFrame | np.ndarray
T = TypeVar("T")

IMAGES_NDIM = 4

LONGEST_ROW = 1 << 24
"""Largest number of bytes of a row of text; a small compressed file may unpack to any length."""

YEARS, FEWEST_NUMBERED, FEWEST_ROWS, MOSTLY = (1900, 2100), 3, 3, 0.5
"""Headers of numbers are years or number at least so many columns, and most rows are not like them.
"""


def read_table(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    *,
    without: Sequence[str] = (),
    text: Collection[str] = (),
) -> Table:
    r"""Read a table or an array of images; the suffix of `path` gives the format.

    Parameters
    ----------
    path : str or os.PathLike
        A csv or tsv file (also ``.gz``), whose first row is a header unless all its cells are
        numbers; a parquet file; an npy file; or an npz file with one array, or one named X.
    columns : sequence of str or None, default=None
        Names of the columns to keep, in this order. A table without column names is returned
        whole.
    without : sequence of str, default=()
        Names of columns to leave out.
    text : collection of str, default=()
        Names of columns of csv and tsv files that stay text even if they look like numbers.

    Returns
    -------
    pandas.DataFrame or numpy.ndarray
        A DataFrame if the table has column names, else a float64 array of shape (rows, columns);
        missing values are NaN. An array of four dimensions holds images and keeps its type.
        Columns of parquet files keep their types. Those of csv and tsv files are float64, booleans
        (true, false) or text, as which dates come, too; empty cells, NA and NaN are missing.

    Raises
    ------
    ValueError
        If the format is unknown, the file is damaged or has no rows, a column is absent or named
        twice, or a column without a name is not numeric.
    OSError
        If the file does not exist or is a folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.csv")
    ...     _ = file.write_text("name,height,weight\nAda,1.7,60\nBob,1.8,\n")
    ...     print(read_table(file, columns=["weight", "height"]))
       weight  height
    0    60.0     1.7
    1     NaN     1.8
    """

    def read(path: Path, suffix: str) -> Table:
        table = _checked(_read(path, suffix, text), columns, without)
        return _with_empty_as_floats(table) if suffix in TEXT_SUFFIXES else table

    return _reading(path, read)


def read_columns(path: str | os.PathLike[str], names: Sequence[str]) -> pd.DataFrame:
    """Read some columns without conversion to numbers, or some arrays of an npz file.

    Parameters
    ----------
    path : str or os.PathLike
        A file as in `read_table`; it must have column names or be an npz file.
    names : sequence of str
        Names of the columns, or of the arrays in an npz file.

    Returns
    -------
    pandas.DataFrame
        The columns in the order of `names`.

    Raises
    ------
    ValueError
        As in `read_table`, or if the table has no column names.
    OSError
        If the file does not exist or is a folder.
    """

    def read(path: Path, suffix: str) -> pd.DataFrame:
        if suffix == ".npz":
            with _archive(path) as archive:
                missing = [name for name in names if name not in archive.files]
                if missing:
                    raise ValueError(
                        f"it lacks {_listed(missing)}; its arrays are {_listed(archive.files)}"
                    )
                return pd.DataFrame({name: _one_a_row(name, archive[name]) for name in names})
        table = _read(path, suffix)
        if not isinstance(table, pd.DataFrame):
            raise ValueError(f"it has no column names to find {_listed(names)} by")
        return _select(table, names)

    return _reading(path, read)


def read_names(path: str | os.PathLike[str]) -> list[str] | None:
    """Return the names of the columns of a file as in `read_table`; None if it has none."""

    def names(path: Path, suffix: str) -> list[str] | None:
        table = _read(path, suffix)
        return list(map(str, table.columns)) if isinstance(table, pd.DataFrame) else None

    return _reading(path, names)


def _reading(path: str | os.PathLike[str], read: Callable[[Path, str], T]) -> T:
    """Call `read` with an existing file and its suffix; every error names the file."""
    path = Path(path)
    check_input(path)
    suffix = known_suffix(path, INPUT_SUFFIXES)
    try:
        return read(path, suffix)
    except Exception as error:  # every parser has its own kinds of error for a damaged file
        raise ValueError(f"can't read {path}: {error}") from error


def write_table(table: Table, path: str | os.PathLike[str]) -> None:
    """Write a table atomically; the suffix of `path` gives the format.

    Parameters
    ----------
    table : pandas.DataFrame or numpy.ndarray
        A table, or images of four dimensions, which only npy files can hold.
    path : str or os.PathLike
        A csv, tsv (also ``.gz``), parquet or npy file. An array is written to text without a
        header and to parquet with the column names x0, x1, ...
    """
    suffix = known_suffix(Path(path), OUTPUT_SUFFIXES)
    images = table.ndim == IMAGES_NDIM
    if images and suffix != ".npy":
        raise ValueError(f"{path}: images are written to .npy files")
    if suffix == ".npy" and any(type.kind not in "biuf" for type in _types(table)):
        raise ValueError(f"{path}: .npy files hold numbers only; write a .csv or .parquet file")
    with atomic_write(path) as temporary:
        if suffix == ".npy":
            with temporary.open("wb") as file:
                np.save(file, table if images else np.asarray(table, dtype=np.float64))
        elif suffix == ".parquet":
            names = [f"x{index}" for index in range(table.shape[1])]
            frame = pd.DataFrame(table, columns=names) if isinstance(table, np.ndarray) else table
            frame.to_parquet(temporary, index=False)
        else:
            write_text(table, temporary, suffix)


def write_text(table: Table, file: TextIO | Path, suffix: str = ".csv") -> None:
    """Write a table as text, with every digit needed to read it back exactly."""
    pd.DataFrame(table).to_csv(
        file,
        sep=_separator(suffix),
        header=isinstance(table, pd.DataFrame),
        index=False,
        compression="gzip" if suffix.endswith(".gz") else None,
    )


def _types(table: Table) -> list[np.dtype]:
    return [table.dtype] if isinstance(table, np.ndarray) else list(table.dtypes)


def _separator(suffix: str) -> str:
    return "\t" if suffix.startswith(".tsv") else ","


def _read(path: Path, suffix: str, text: Collection[str] = ()) -> Table:
    if suffix in TEXT_SUFFIXES:
        return _read_text(path, suffix, text)
    with path.open("rb") as file:
        if suffix == ".parquet":  # given a path, pandas would add the columns of a=1/b=2/ folders
            return pd.read_parquet(file)
        if suffix == ".npy":
            return np.lib.format.read_array(file, allow_pickle=False)
    with _archive(path) as archive:
        names = archive.files
        if len(names) != 1 and "X" not in names:
            raise ValueError(f"needs one array or one named X, but holds {_listed(names)}")
        return np.asarray(archive[names[0] if len(names) == 1 else "X"])


def _one_a_row(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"the array {name} needs one value per row, but has shape {array.shape}")
    return array


def _archive(path: Path) -> np.lib.npyio.NpzFile:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not an npz archive")
    return np.load(path, allow_pickle=False)


def _read_text(path: Path, suffix: str, as_text: Collection[str]) -> Table:
    opened = gzip.open if suffix.endswith(".gz") else open
    convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        rows = csv.reader(_lines_of_header(text), delimiter=_separator(suffix))
        first = [cell.strip() for cell in next((row for row in rows if row), [])]
        header_lines = rows.line_num
    if not first:
        raise ValueError("it is empty")
    if len(first) == 1 and ";" in first[0]:
        raise ValueError(f"its only column is named {first[0]}: separate cells by commas")
    named = not all(_is_number(cell) or cell in convert.null_values for cell in first)
    options = pyarrow.csv.ReadOptions(
        use_threads=False,  # so that errors have a row number
        block_size=LONGEST_ROW,
        skip_rows=header_lines if named else 0,
        column_names=[str(index + 1) for index in range(len(first))],
    )
    # In a single column an empty line is a missing cell.
    single = len(first) == 1
    parse = pyarrow.csv.ParseOptions(delimiter=_separator(suffix), ignore_empty_lines=not single)
    convert.column_types = {
        str(index + 1): pyarrow.string() for index, name in enumerate(first) if name in as_text
    }

    def read() -> pyarrow.Table:
        # Arrow, unlike pandas, refuses ragged rows and rounds every number correctly.
        with opened(path, "rb") as file:
            try:
                return pyarrow.csv.read_csv(file, options, parse, convert)
            except pyarrow.ArrowInvalid as error:
                if "straddling" in str(error):  # two blocks
                    raise ValueError(f"a row is longer than {LONGEST_ROW >> 20} MB") from error
                if parse.newlines_in_values:
                    raise
        parse.newlines_in_values = True  # slower, and needed only where such a cell ends a block
        return read()

    table = read()
    times = {e.name: pyarrow.string() for e in table.schema if pyarrow.types.is_temporal(e.type)}
    if times:  # the user says which columns are dates; others may only look like them
        convert.column_types = {**convert.column_types, **times}
        table = read()
    if single and table.num_rows and not table[0][-1].is_valid:
        with opened(path, "rt", encoding="utf-8-sig", newline=None) as text:
            table = table[: table.num_rows - _empty_lines_at_end(text)]
    frame = table.to_pandas()
    if named:
        return frame.set_axis(first, axis="columns")
    values = _numeric(frame).to_numpy()
    if looks_like_header(values):
        warn_user(
            f"{path}: its first row, {_listed(first)}, looks like a header but is read as a row of "
            "numbers; if it is one, name the columns by more than numbers"
        )
    return values


def _lines_of_header(text: TextIO) -> Iterator[str]:
    """Yield the first lines of a file; raise `ValueError` if they are longer than a row may be."""
    left = LONGEST_ROW
    while line := text.readline(left):
        left -= len(line)
        if left == 0:
            raise ValueError(f"its first row is longer than {LONGEST_ROW >> 20} MB")
        yield line


def _empty_lines_at_end(lines: Iterable[str]) -> int:
    count = 0
    for line in lines:
        count = 0 if line.strip("\n") else count + 1
    return count


def looks_like_header(values: np.ndarray) -> bool:
    """Whether the first row of numbers may be a header: years, 0, 1, 2, ..., or whole numbers only.

    Examples
    --------
    >>> looks_like_header(np.array([[2019.0, 2020.0], [1.0, 2.0], [3.0, 4.0]]))
    True
    """
    if len(values) < FEWEST_ROWS or values.shape[1] == 1:
        return False
    first, others = values[0], values[1:]
    if not (first % 1 == 0).all():
        return False
    fractions = (others % 1 != 0).mean(axis=0) > MOSTLY
    if len(np.unique(first)) == len(first) and fractions.all():
        return True
    gaps = np.diff(first)
    numbered = (gaps == 1).all() and len(first) >= FEWEST_NUMBERED
    years = (gaps > 0).all() and YEARS[0] <= first[0] and first[-1] <= YEARS[1]
    # Rows of data may be years or counts, too.
    unlike = ((others < first[0]) | (others > first[-1])).mean() > MOSTLY
    return bool((numbered or years) and unlike)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # float() reads 1_000


def _checked(table: Table, columns: Sequence[str] | None, without: Sequence[str]) -> Table:
    if isinstance(table, pd.DataFrame):
        if columns is None and without:
            columns = list(map(str, table.columns))
        if columns is not None:
            columns = [name for name in columns if name not in without]
        table = _select(table, columns)
    elif table.ndim not in (2, IMAGES_NDIM) or table.dtype.kind not in "biuf":
        found = f"shape {table.shape} and type {table.dtype}"
        raise ValueError(f"needs a two-dimensional array of numbers, or images, not one of {found}")
    if 0 in table.shape:
        raise ValueError("it has no rows" if len(table) == 0 else "it has no columns")
    as_it_is = isinstance(table, pd.DataFrame) or table.ndim == IMAGES_NDIM
    return table if as_it_is else table.astype(np.float64)


def _with_empty_as_floats(table: Table) -> Table:
    """Return a table with float64 for columns without any value, which text leaves open."""
    if not isinstance(table, pd.DataFrame):
        return table
    empty = [name for name, column in table.items() if column.isna().all()]
    return table.astype(dict.fromkeys(empty, np.float64))


def _select(frame: pd.DataFrame, columns: Sequence[str] | None) -> pd.DataFrame:
    frame = frame.set_axis([str(name) for name in frame.columns], axis="columns")
    if columns is not None:
        missing = [name for name in columns if name not in frame.columns]
        if missing:
            raise ValueError(
                f"it lacks {_listed(missing)}; its columns are {_listed(frame.columns)}"
            )
        frame = frame[list(columns)]
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated) > 0:
        raise ValueError(f"the columns {_listed(repeated)} appear more than once")
    if "" in frame.columns:
        raise ValueError("a column has no name (row numbers?); name it or remove it")
    return frame


def _numeric(frame: pd.DataFrame) -> pd.DataFrame:
    # A column without any value has no type; it counts as a column of missing numbers.
    bad = [n for n, x in frame.items() if x.dtype.kind not in "biuf" and not x.isna().all()]
    if bad:
        advice = "give the table a first row with the names of its columns"
        raise ValueError(f"the columns {_listed(bad)} are not numbers; {advice}")
    return frame.astype(np.float64)


def _listed(names: Collection[object], most: int = 10) -> str:
    shown = ", ".join(str(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
