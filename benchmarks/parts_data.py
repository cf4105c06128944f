"""Tables of the benchmarks of parts of rows, and how their cells are hidden.

imputation.py, parts_of_rows.py, any_conditional.py and prediction.py use them. All rows are
complete before cells are hidden: rows that miss cells of their own are left out.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from small_tables_data import MissingTableError

from roundtrip.datasets.files import FOLDER_VARIABLE

MAR = "30 % MAR"
SHARES = {"20 % MCAR": 0.2, "50 % MCAR": 0.5, MAR: 0.3}
"""Share of hidden cells of each pattern; with MAR of the columns that have hidden cells."""

KNOWN_COLUMNS = 0.3
"""Share of the columns that stay complete with MAR, and decide which other cells are hidden."""

STRENGTH = 2.0
"""Standard deviation of the log odds with MAR that a cell is hidden."""


@dataclass(frozen=True)
class Table:
    """How to get a table, and the column that is predicted from the others.

    Attributes
    ----------
    load : callable
        Returns all rows, given the folder with the data sets.
    target : str or None, default=None
        Column to predict, if one makes sense.
    score : {"R2", "AUROC"}, default="R2"
        Figure of these predictions.
    """

    load: Callable[[Path], pd.DataFrame]
    target: str | None = None
    score: str = "R2"


def rows_of(name: str, seed: int, folder: Path | None) -> pd.DataFrame:
    """All complete rows of a table in random order; raises `MissingTableError` without its file.

    Numbers are float64, so that cells can be hidden; text stays text.
    """
    frame = _read(name, folder)
    order = np.random.default_rng(seed).permutation(len(frame))
    return frame.iloc[order].reset_index(drop=True)


@cache
def _read(name: str, folder: Path | None) -> pd.DataFrame:
    home = folder or os.getenv(FOLDER_VARIABLE)
    try:
        frame = TABLES[name].load(Path(home or ""))
    except FileNotFoundError as error:
        reason = error if home else f"--data or {FOLDER_VARIABLE} must name the folder of data sets"
        raise MissingTableError(reason) from error
    frame = frame.dropna().reset_index(drop=True)
    return frame.astype(dict.fromkeys(frame.select_dtypes("number").columns, np.float64))


def available(tables, folder, log=print):
    """Tables whose files are there; says which are not."""
    found = []
    for table in tables:
        try:
            _read(table, folder)
            found.append(table)
        except MissingTableError as error:
            log(f"{table} is left out: {error}")
    return found


def categories_of(frame: pd.DataFrame) -> list[str]:
    """Columns of text."""
    return list(frame.columns.difference(frame.select_dtypes("number").columns, sort=False))


def hidden_cells(frame: pd.DataFrame, pattern: str, seed: int) -> np.ndarray:
    """Which cells are hidden, `(rows, columns)`; each row keeps at least one.

    MCAR: each cell with the same probability. MAR: some columns stay complete; the log odds that a
    cell of another column is hidden are a random combination of these, with a standard deviation of
    `STRENGTH`, around a value that gives the share of the pattern. A category of them counts by a
    random number for each level.
    """
    rng = np.random.default_rng([seed, list(SHARES).index(pattern)])
    share, shape = SHARES[pattern], frame.shape
    if pattern == MAR:
        known = rng.permutation(shape[1])[: max(1, round(KNOWN_COLUMNS * shape[1]))]
        values = np.column_stack([_numbers(frame.iloc[:, j], rng) for j in sorted(known)])
        probability = np.zeros(shape)
        for j in sorted(set(range(shape[1])) - set(known)):
            odds = _standardised(values @ rng.normal(size=values.shape[1])) * STRENGTH
            middle = brentq(lambda shift, odds=odds: expit(odds + shift).mean() - share, -30, 30)
            probability[:, j] = expit(odds + middle)
    else:
        probability = np.full(shape, share)
    hidden = rng.random(shape) < probability
    empty = hidden.all(axis=1).nonzero()[0]
    hidden[empty, rng.integers(shape[1], size=len(empty))] = False
    return hidden


def _numbers(cells: pd.Series, rng: np.random.Generator) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(cells):
        return _standardised(cells.to_numpy(np.float64))
    codes, levels = pd.factorize(cells, sort=True)
    return _standardised(rng.normal(size=len(levels))[codes])


def _standardised(values: np.ndarray) -> np.ndarray:
    spread = values.std()
    return (values - values.mean()) / (spread if spread > 0 else 1.0)


def _csv(file: str, home: Path, **arguments) -> pd.DataFrame:
    return pd.read_csv(home / file, **arguments)


def _arrays(file: str, home: Path, label: str | None = None) -> pd.DataFrame:
    with np.load(home / file) as arrays:
        frame = pd.DataFrame(arrays["X"], columns=arrays["columns"].tolist())
        return frame if label is None else frame.assign(**{label: arrays["y"]})


def _breast_cancer(home: Path) -> pd.DataFrame:
    return load_breast_cancer(as_frame=True).data


_BANK_NUMBERS = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")

TABLES = {
    "concrete": Table(partial(_csv, "concrete.csv.gz"), "strength"),
    "red wine": Table(partial(_csv, "redwine.csv.gz"), "quality"),
    "breast cancer": Table(_breast_cancer, "mean area"),
    "Beijing": Table(lambda home: _csv("beijing.csv.gz", home).drop(columns="No"), "pm2.5"),
    "Adult": Table(partial(_csv, "adult.csv.gz"), "income", "AUROC"),
    "CASP": Table(partial(_arrays, "casp.npz", label="RMSD"), "RMSD"),
    "BANK": Table(partial(_csv, "bank-full.csv.gz", sep=";", usecols=_BANK_NUMBERS)),
    "AReM": Table(partial(_arrays, "arem.npz")),
}
