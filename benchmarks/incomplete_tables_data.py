"""The tables of incomplete_tables.py, and how their cells are removed."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from small_tables_data import MissingTableError

from roundtrip.data.resolution import recognise
from roundtrip.datasets.files import FOLDER_VARIABLE

TEST_SHARE, MOST_SCORED = 0.2, 2000
REMOVED = 0.3
"""Share of the training cells that are removed."""


@dataclass(frozen=True)
class Split:
    """Rows of one split; numbers are float64, text stays text.

    Attributes
    ----------
    complete, incomplete : DataFrame
        Training rows before and after cells were removed.
    test : DataFrame
        Complete rows to score.
    """

    complete: pd.DataFrame
    incomplete: pd.DataFrame
    test: pd.DataFrame


def split_of(table, split, folder):
    """Training and test rows of a table; raises `MissingTableError` if its file is not there."""
    home = folder or os.getenv(FOLDER_VARIABLE)
    if not home:
        raise MissingTableError(f"--data or {FOLDER_VARIABLE} must name the folder of data sets")
    try:
        frame = TABLES[table](Path(home))
    except FileNotFoundError as error:
        raise MissingTableError(error) from error
    numbers = frame.select_dtypes("number").columns
    frame = frame.astype(dict.fromkeys(numbers, np.float64))
    rng = np.random.default_rng(split)
    shuffled = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
    held_out = round(TEST_SHARE * len(frame))
    complete = shuffled[held_out:].reset_index(drop=True)
    incomplete = complete.mask(rng.random(complete.shape) < REMOVED)
    return Split(complete, incomplete, shuffled[: min(held_out, MOST_SCORED)])


def available(tables, folder, log=print):
    """Tables whose files are there; says which are not."""
    found = []
    for table in tables:
        try:
            split_of(table, 0, folder)
            found.append(table)
        except MissingTableError as error:
            log(f"{table} is left out: {error}")
    return found


def roundings(frame):
    """How the known cells of each column of numbers are rounded."""
    numbers = frame.select_dtypes("number")
    return {name: recognise(column.dropna().to_numpy()) for name, column in numbers.items()}


def _casp(home):
    with np.load(home / "casp.npz") as arrays:
        return pd.DataFrame(arrays["X"], columns=arrays["columns"].tolist())


def _beijing(home):
    """Rows without pm2.5 are left out, so that test rows are complete.

    A few temperatures and pressures are averages of whole numbers: removed cells would decide
    whether a fit sees one, and thus the rounding step, which moves all log densities by up to a
    nat. Iws adds up a few wind speeds to hundredths, on whose sums densities could concentrate.
    """
    frame = pd.read_csv(home / "beijing.csv.gz").drop(columns="No").dropna(subset=["pm2.5"])
    return frame.assign(**{name: frame[name].round() for name in ("TEMP", "PRES", "Iws")})


TABLES = {"CASP": _casp, "Beijing": _beijing}
