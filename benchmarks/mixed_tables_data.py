"""The tables of mixed_tables.py: numbers, text, codes and missing cells, as pandas reads them."""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from roundtrip.datasets.files import FOLDER_VARIABLE

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Table:
    """Where a table is, and what its file does not say.

    Attributes
    ----------
    file : str
        Name of the file, a csv.
    target : str
        Column that trees predict from the others.
    score : {"AUROC", "R2"}, default="AUROC"
        Figure of these predictions: R2 if the target is a number.
    separator : str, default=","
        Character between the cells of a line.
    dropped : tuple of str, default=()
        Columns that only number the rows.
    codes : tuple of str, default=()
        Whole numbers that are names of categories. All methods are told.
    """

    file: str
    target: str
    score: str = "AUROC"
    separator: str = ","
    dropped: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


TABLES = {
    "Adult": Table("adult.csv.gz", "income"),
    "Shoppers": Table(
        "shoppers.csv.gz",
        "Revenue",
        codes=("OperatingSystems", "Browser", "Region", "TrafficType"),
    ),
    "Beijing": Table("beijing.csv.gz", "pm2.5", "R2", dropped=("No",)),
    "BANK": Table("bank-full.csv.gz", "y", separator=";"),
}


@dataclass(frozen=True)
class Split:
    """Rows of one split.

    Attributes
    ----------
    train, test : DataFrame
        Rows to fit, and rows to compare samples with; types as pandas reads them.
    target : str
        Column that trees predict.
    codes : tuple of str
        Whole numbers that are names of categories.
    digest : str
        Short name of the rows and of what is known about them.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    target: str
    codes: tuple[str, ...]
    digest: str

    @property
    def categories(self) -> list[str]:
        """Columns of text, of booleans and of codes."""
        return categories_of(self.train, self.codes)


def categories_of(frame: pd.DataFrame, codes: tuple[str, ...] = ()) -> list[str]:
    """Columns of a table that are not numbers, and those that only look like numbers."""
    return [
        name
        for name in frame
        if name in codes or not is_numeric_dtype(frame[name]) or is_bool_dtype(frame[name])
    ]


def split_of(name: str, seed: int, folder: Path | None) -> Split:
    """Training and test rows: a random fifth is held out."""
    table = TABLES[name]
    frame = _read(name, folder)
    shuffled = frame.sample(frac=1, random_state=seed)
    held_out = round(TEST_SHARE * len(frame))
    test, train = (
        rows.reset_index(drop=True) for rows in (shuffled[:held_out], shuffled[held_out:])
    )
    depends = [held_out, table, list(frame.dtypes.astype(str)), frame.isna().sum().tolist()]
    depends += [len(frame), *frame.columns]
    digest = hashlib.sha256(repr(depends).encode()).hexdigest()[:10]
    return Split(train, test, table.target, table.codes, digest)


@cache
def _read(name: str, folder: Path | None) -> pd.DataFrame:
    home = folder or os.getenv(FOLDER_VARIABLE)
    if not home:
        raise SystemExit(f"--data or {FOLDER_VARIABLE} must name the folder of data sets")
    table = TABLES[name]
    frame = pd.read_csv(Path(home) / table.file, sep=table.separator)
    return frame.drop(columns=list(table.dropped))
