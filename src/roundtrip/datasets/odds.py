"""Shuttle, Mammography and ForestCover: tables with known outliers, from the ODDS collection."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from roundtrip.datasets.archives import open_arrays
from roundtrip.datasets.dataset import Dataset
from roundtrip.datasets.files import Download, Folder, Form, check_digest, fetch
from roundtrip.datasets.preparation import FloatArray, spread
from roundtrip.datasets.splits import split_rows
from roundtrip.parameters import check_choice, check_integer

# ODDS has no stable addresses; ADBench provides copies of its tables.
_ADBENCH = "https://raw.githubusercontent.com/Minqi824/ADBench/main/adbench/datasets/Classical/"


class _Table(NamedTuple):
    X: FloatArray
    outlier: NDArray[np.int64]


@dataclass(frozen=True)
class _Source:
    name: str
    columns: tuple[str, ...]
    files: tuple[str, ...]  # names in this package's, ADBench's and ODDS's format
    sha256: str
    latent_dim: int
    integers: bool
    description: str


_SHUTTLE = _Source(
    name="Shuttle",
    sha256="dafd5b53993125f29714784201fe742b1818287ae0c4c9e1fe4ec928231dbaa6",
    files=("shuttle.npz", "32_shuttle.npz", "shuttle.mat"),
    columns=("time", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"),
    latent_dim=3,
    integers=True,
    description="Sensors of a space shuttle; the rare states are outliers. Not scaled.",
)
_MAMMOGRAPHY = _Source(
    name="Mammography",
    columns=(
        "area",
        "grey_level",
        "gradient_strength",
        "rms_noise_fluctuation",
        "contrast",
        "shape_descriptor",
    ),
    files=("mammography.npz", "23_mammography.npz", "mammography.mat"),
    sha256="3085ba4e5ad3df062d89fd7ae9ffd612a93743b90829497f0efb7f31a836113c",
    latent_dim=3,
    integers=False,
    description="Spots in mammograms; calcifications are outliers. Standardised by the source.",
)
_FORESTCOVER = _Source(
    name="ForestCover",
    columns=(
        "Elevation",
        "Aspect",
        "Slope",
        "Horizontal_Distance_To_Hydrology",
        "Vertical_Distance_To_Hydrology",
        "Horizontal_Distance_To_Roadways",
        "Hillshade_9am",
        "Hillshade_Noon",
        "Hillshade_3pm",
        "Horizontal_Distance_To_Fire_Points",
    ),
    files=("forestcover.npz", "10_cover.npz", "cover.mat"),
    sha256="85e2312dc7ec4fba7c1e85a54cb752be152c2efdc3149443f8e0aeaa0045dda4",
    latent_dim=4,
    integers=True,
    description="Places in a forest; those with one rare kind of tree are outliers. Not scaled.",
)


class _Loader(Protocol):
    """Signature of the three loaders."""

    def __call__(
        self,
        *,
        data_home: Folder | None = None,
        random_state: int = 0,
        dequantize: bool = False,
        download: bool = True,
    ) -> Dataset: ...


def _loader(source: _Source, summary: str, sizes: str) -> _Loader:
    """Return the loader of one of the tables, with its docstring."""

    def load(
        *,
        data_home: Folder | None = None,
        random_state: int = 0,
        dequantize: bool = False,
        download: bool = True,
    ) -> Dataset:
        return _load(source, data_home, random_state, dequantize, download)

    effect = (
        "Whether to spread the integers evenly over ±0.5. Otherwise the likelihood has no upper\n"
        "        bound."
        if source.integers
        else "No effect: the columns have no common rounding step."
    )
    load.__name__ = load.__qualname__ = f"load_{source.name.lower()}"
    load.__doc__ = f"""Load {source.name}: {summary}.

    Parameters
    ----------
    data_home : str, os.PathLike or None, default=None
        Folder with ``{"``, ``".join(source.files[:2])}`` (ADBench's copy) or
        ``{source.files[2]}`` (the file of ODDS); None as in `load_arem`.
    random_state : int, default=0
        Seed of the noise and of the split.
    dequantize : bool, default=False
        {effect}
    download : bool, default=True
        Whether to download the file if it is in no folder (needs pooch).

    Returns
    -------
    Dataset
        {sizes} rows; label 1 marks outliers.
    """
    return load


load_shuttle = _loader(
    _SHUTTLE, "49,097 rows of 9 integers, 7.15 % outliers, not scaled", "39,770, 4,418 and 4,909"
)
load_mammography = _loader(
    _MAMMOGRAPHY,
    "11,183 rows of 6 features, 2.32 % outliers, standardised by the source",
    "9,059, 1,006 and 1,118",
)
load_forestcover = _loader(
    _FORESTCOVER,
    "286,048 rows of 10 integers, 0.96 % outliers, not scaled",
    "231,700, 25,744 and 28,604",
)


def _load(
    source: _Source, data_home: Folder | None, random_state: int, dequantize: bool, download: bool
) -> Dataset:
    rng = np.random.default_rng(check_integer("random_state", random_state, minimum=0))
    check_choice("dequantize", dequantize, (True, False))
    raw = fetch(
        source.name,
        [Form((name,), _read) for name in source.files],
        [Download(_ADBENCH + source.files[1])],
        check=lambda table: check_digest(source.sha256, *table),
        data_home=data_home,
        download=download,
    )
    noisy = spread(raw.X, 0.5, rng)  # always drawn, so that the split is the same
    X = noisy if dequantize and source.integers else raw.X
    return Dataset.from_parts(
        source.name,
        X,
        split_rows(len(X), rng),
        labels=raw.outlier,
        columns=source.columns,
        label_names=("inlier", "outlier"),
        latent_dim=source.latent_dim,
        description=source.description,
    )


def _read(path: Path) -> _Table:
    """Read the arrays X and y of an npz or mat file."""
    if path.suffix == ".mat":
        data = loadmat(path, variable_names=["X", "y"])
        X, y = data["X"], data["y"]
    else:
        with open_arrays(path) as arrays:
            X, y = arrays["X"], arrays["y"]
    return _sorted(_Table(X.astype(np.float64), y.ravel().astype(np.int64)))


def _sorted(table: _Table) -> _Table:
    """Sort the rows, so that copies of a table with another order give the same split."""
    order = np.lexsort((table.outlier, *table.X.T[::-1]))
    return _Table(table.X[order], table.outlier[order])
