"""The tables of small_tables.py: small, wide and whole ones, and how they are prepared and split.

Each column is spread evenly over its rounding step, if it has one, then standardised by the
training rows: log densities of all tables are in comparable units, and none is without bound
because values repeat.
"""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import multivariate_normal
from sklearn import datasets

from roundtrip.data.resolution import column_resolution
from roundtrip.datasets import SimulatedData, load_mnist, make_involute
from roundtrip.datasets.files import FOLDER_VARIABLE

TEST_SHARE, SUBSET_TEST_ROWS = 0.2, 2000
SUBSETS = (50, 100, 300, 1000, 3000)
"""Training rows of the subsets; all of a split have the same test rows."""

MOST_SCORED, MOST_SCORED_WIDE = 2000, 300
MNIST_ROWS, MNIST_BLOCK = 20_000, 4

FACTOR_ROWS, FACTOR_COLUMNS, FACTORS = 10_000, 90, 20
FACTOR_SEED = 90
"""Of the model itself, which is the same in each split."""


class MissingTableError(Exception):
    """A table's file or package is not there; the message says which."""


@dataclass(frozen=True)
class Table:
    """How to get a table.

    Attributes
    ----------
    groups : tuple of str
        "small", "wide" or "whole".
    load : callable
        Returns all rows, given the folder with the data sets.
    make : callable or None
        Draws `SimulatedData`, given a seed, instead.
    training_rows : int or None
        Size of a subset; None for all but a fifth of the rows.
    """

    groups: tuple[str, ...]
    load: Callable[[Path], np.ndarray] | None = None
    make: Callable[..., SimulatedData] | None = None
    training_rows: int | None = None


@dataclass(frozen=True)
class Split:
    """Prepared rows of one split.

    Attributes
    ----------
    train, test : ndarray of shape (rows, features)
        Rows to fit and rows to score.
    truth : ndarray of shape (rows,) or None
        True log density of the test rows, if it is known.
    spread_columns : int
        Number of columns that are spread over their rounding steps.
    digest : str
        Short name of how the rows were prepared: their number and rounding steps.
    """

    train: np.ndarray
    test: np.ndarray
    truth: np.ndarray | None
    spread_columns: int
    digest: str


def split_of(name: str, split: int, folder: Path | None) -> Split:
    """Training and test rows of a table; raises `MissingTableError` if its file is not there."""
    table = TABLES[name]
    rng = np.random.default_rng(split)
    if table.make is None:
        X, step = rows_and_steps(table.load, folder)
        X = X + step * rng.uniform(-0.5, 0.5, X.shape)
        X, log_density = X[rng.permutation(len(X))], None
    else:
        data = table.make(random_state=split)
        X, log_density, step = data.X, data.log_density, np.zeros(data.dim)
    if table.training_rows is None:
        held_out = round(TEST_SHARE * len(X))
        train, test = X[held_out:], X[:held_out]
    else:
        train = X[SUBSET_TEST_ROWS : SUBSET_TEST_ROWS + table.training_rows]
        test = X[:SUBSET_TEST_ROWS]
    test = test[: MOST_SCORED_WIDE if "wide" in table.groups else MOST_SCORED]
    mean, sd = train.mean(axis=0), train.std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    truth = None if log_density is None else log_density(test) + np.log(sd).sum()
    depends = [train.shape, len(test), [f"{each:.6g}" for each in step]]
    digest = hashlib.sha256(repr(depends).encode()).hexdigest()[:10]
    return Split((train - mean) / sd, (test - mean) / sd, truth, int((step > 0).sum()), digest)


@cache
def rows_and_steps(
    load: Callable[[Path], np.ndarray], folder: Path | None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a table without constant columns, and the rounding step of each column."""
    home = folder or os.getenv(FOLDER_VARIABLE)
    try:
        X = np.asarray(load(Path(home or "")), dtype=np.float64)
    except ImportError as error:
        file = "benchmarks/small-tables-requirements.txt"
        raise MissingTableError(f"{error}: pip install -r {file}") from error
    except FileNotFoundError as error:
        reason = error if home else f"--data or {FOLDER_VARIABLE} must name the folder of data sets"
        raise MissingTableError(reason) from error
    X = X[:, np.ptp(X, axis=0) > 0]
    return X, column_resolution(X)


def _scikit_learn(load: Callable, folder: Path, **arguments) -> np.ndarray:
    return load(**arguments).data


def _penguins(folder: Path) -> np.ndarray:
    from palmerpenguins import load_penguins

    return load_penguins(return_X_y=True)[0].dropna().to_numpy()


def _cars(folder: Path) -> np.ndarray:
    from vega_datasets import data

    cars = pd.DataFrame(json.loads(data.cars.raw()))
    cars["Year"] = cars["Year"].str[:4].astype(int)  # written as a date
    return cars.select_dtypes("number").dropna().to_numpy()


def _csv(file: str, folder: Path, **arguments) -> np.ndarray:
    return pd.read_csv(folder / file, **arguments).select_dtypes("number").to_numpy()


def _arrays(file: str, folder: Path, *, usual: bool = False) -> np.ndarray:
    """Rows of an npz file; the usual ones alone are those without the label of outliers."""
    with np.load(folder / file) as arrays:
        return arrays["X"][arrays["y"] == 0] if usual else arrays["X"]


def _mnist(folder: Path) -> np.ndarray:
    """Sums over blocks of pixels, which are averages but for a factor and stay whole numbers."""
    images = load_mnist(data_home=folder, download=False).train[:MNIST_ROWS, ..., 0]
    side = images.shape[1] // MNIST_BLOCK
    blocks = images.reshape(-1, side, MNIST_BLOCK, side, MNIST_BLOCK)
    return blocks.sum(axis=(2, 4), dtype=np.int64).reshape(len(images), -1)


def make_factor_model(n_samples: int = FACTOR_ROWS, *, random_state: int) -> SimulatedData:
    """Draw from a factor model whose columns are then bent: of three, one is skewed, one has tails.

    y = L f + e is Gaussian with unit variances; x_j is y_j, exp(y_j / 2) or sinh(y_j).
    """
    model = np.random.default_rng(FACTOR_SEED)
    loadings = model.normal(size=(FACTOR_COLUMNS, FACTORS))
    own = model.uniform(0.1, 0.5, FACTOR_COLUMNS)  # share of a column's variance that is its own
    loadings *= np.sqrt((1 - own) / (loadings**2).sum(axis=1))[:, None]
    rng = np.random.default_rng(random_state)
    y = rng.normal(size=(n_samples, FACTORS)) @ loadings.T
    y += np.sqrt(own) * rng.normal(size=y.shape)
    x = y.copy()
    x[:, 1::3], x[:, 2::3] = np.exp(y[:, 1::3] / 2), np.sinh(y[:, 2::3])
    gaussian = multivariate_normal(cov=loadings @ loadings.T + np.diag(own))
    return SimulatedData("factor_model", x, partial(_factor_log_density, gaussian=gaussian))


def _factor_log_density(x: np.ndarray, gaussian) -> np.ndarray:
    y = x.copy()
    y[:, 1::3], y[:, 2::3] = 2 * np.log(x[:, 1::3]), np.arcsinh(x[:, 2::3])
    # dy / dx of exp is 2 / x, of sinh 1 / sqrt(1 + x²).
    log_det = np.log(2 / x[:, 1::3]).sum(axis=1) - 0.5 * np.log1p(x[:, 2::3] ** 2).sum(axis=1)
    return gaussian.logpdf(y) + log_det


def _small(load: Callable) -> Table:
    return Table(("small",), load)


def _outliers(name: str, *groups: str) -> Table:
    """A table of the outlier collection: all rows of small ones, the usual rows of others."""
    return Table(groups, partial(_arrays, f"outliers/{name}.npz", usual="small" not in groups))


_BANK_COLUMNS = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
_SUBSETS_OF = {
    "CASP": {"load": partial(_arrays, "casp.npz")},
    "BANK": {"load": partial(_csv, "bank-full.csv.gz", sep=";", usecols=_BANK_COLUMNS)},
    "involute": {"make": partial(make_involute, SUBSET_TEST_ROWS + max(SUBSETS))},
}

TABLES = {
    "iris": _small(partial(_scikit_learn, datasets.load_iris)),
    "wine": _small(partial(_scikit_learn, datasets.load_wine)),
    "breast cancer": _small(partial(_scikit_learn, datasets.load_breast_cancer)),
    "diabetes": _small(partial(_scikit_learn, datasets.load_diabetes, scaled=False)),
    "penguins": _small(_penguins),
    "cars": _small(_cars),
    "concrete": _small(partial(_csv, "concrete.csv.gz")),
    "red wine": _small(partial(_csv, "redwine.csv.gz")),
    **{name: _outliers(name, "small") for name in ("glass", "stamps", "vowels", "ionosphere")},
    **{
        f"{name}, {rows} rows": Table(("small", "subsets"), **source, training_rows=rows)
        for name, source in _SUBSETS_OF.items()
        for rows in SUBSETS
    },
    "digits, 8 x 8": Table(("wide",), partial(_scikit_learn, datasets.load_digits)),
    "MNIST, 7 x 7": Table(("wide",), _mnist),
    "landsat": _outliers("landsat", "wide", "whole"),
    "factor model": Table(("wide",), make=make_factor_model),
    **{
        name: _outliers(name, "whole")
        for name in ("magic_gamma", "annthyroid", "pageblocks", "waveform")
    },
}
GROUPS = ("small", "subsets", "wide", "whole")
