"""The methods of mixed_tables.py: each fits a table within a time and draws a table.

A method is a function `(split, task) -> Drawn`. Packages of others run as scripts in an
environment of their own (`--peers`), which exchange Parquet files with this process.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from mixed_tables_copula import GaussianCopula
from mixed_tables_data import Split

from roundtrip import Roundtrip, __version__
from roundtrip.reproduce.fits import timed_fit

REAL, INDEPENDENT, COPULA, ROUNDTRIP = (
    "real rows",
    "independent columns",
    "Gaussian copula",
    "Roundtrip",
)

HERE = Path(__file__).parent

GRACE = 5
"""A script is ended after so many times the budget: not all packages can be told when to stop."""


@dataclass(frozen=True)
class Task:
    """What a method has to do.

    Attributes
    ----------
    seed : int
        Of the fit and of the samples.
    budget : float
        Seconds for the fit. Samples take their own time.
    threads : int
        Threads of the fit and of the samples.
    rows : int
        Number of samples.
    peers : Path or None
        Python of the environment with the packages of others.
    """

    seed: int
    budget: float
    threads: int
    rows: int
    peers: Path | None = None


@dataclass(frozen=True)
class Drawn:
    """Samples, and what a record says about them.

    Attributes
    ----------
    samples : DataFrame
        Rows with the columns of the training rows.
    facts : dict
        At least `fit_seconds`, `cpu_seconds`, `sample_seconds` and `versions`.
    """

    samples: pd.DataFrame
    facts: dict


@dataclass(frozen=True)
class Method:
    """A method, and what the page says about its settings.

    Attributes
    ----------
    draw : callable
        Fits and draws: `(split, task) -> Drawn`.
    settings : str
        What was chosen; part of a record's key.
    timed : bool
        Whether budget and threads matter; they are then part of a record's key, too.
    external : bool
        Whether it needs the environment of other packages.
    """

    draw: Callable[[Split, Task], Drawn]
    settings: str
    timed: bool = False
    external: bool = False


def real_rows(split: Split, task: Task) -> Drawn:
    return _timed(split.train, lambda train: lambda: train.iloc[: task.rows], _versions())


def independent_columns(split: Split, task: Task) -> Drawn:
    rng = np.random.default_rng(task.seed)

    def fit(train):
        def sample():
            rows = rng.integers(len(train), size=(train.shape[1], task.rows))
            parts = [train[name].iloc[each] for name, each in zip(train, rows, strict=True)]
            return pd.concat([part.reset_index(drop=True) for part in parts], axis=1)

        return sample

    return _timed(split.train, fit, _versions())


def gaussian_copula(split: Split, task: Task) -> Drawn:
    def fit(train):
        copula = GaussianCopula(split.categories, random_state=task.seed).fit(train)
        return lambda: copula.sample(task.rows)

    return _timed(split.train, fit, _versions("scipy"))


def roundtrip(split: Split, task: Task) -> Drawn:
    import torch

    torch.set_num_threads(task.threads)
    kinds = dict.fromkeys(split.codes, "category")
    est = Roundtrip(random_state=task.seed, columns=kinds or None, missing="model")
    record = timed_fit(est, split.train, max_time=task.budget)
    start = time.perf_counter()
    samples = est.sample(task.rows, random_state=task.seed)
    names = ("fit_seconds", "cpu_seconds", "stopped_by", "epochs")
    facts = {name: record[name] for name in names}
    facts["sample_seconds"] = time.perf_counter() - start
    facts["same_types"] = bool((samples.dtypes == split.train.dtypes).all())
    return Drawn(samples, facts | {"versions": _versions("torch") | {"roundtrip": __version__}})


def script(name: str) -> Callable[[Split, Task], Drawn]:
    """A method that is a script in the environment of other packages."""

    def draw(split: Split, task: Task) -> Drawn:
        with tempfile.TemporaryDirectory(prefix="mixed-tables-") as folder:
            folder = Path(folder)
            split.train.to_parquet(folder / "train.parquet")
            told = {**asdict(task), "peers": None, "categories": split.categories}
            (folder / "request.json").write_text(json.dumps(told))
            threads = dict.fromkeys(
                ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(task.threads)
            )
            # The other environment has packages of its own, and nothing is to be downloaded.
            own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
            done = subprocess.run(
                [task.peers, HERE / name, folder],
                env={**own, **threads, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HERE)},
                capture_output=True,
                text=True,
                timeout=GRACE * task.budget,
            )
            if done.returncode:
                raise RuntimeError(f"{name} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
            samples = pd.read_parquet(folder / "samples.parquet")
            return Drawn(
                samples[list(split.train)], json.loads((folder / "facts.json").read_text())
            )

    return draw


def _timed(train, fit, versions) -> Drawn:
    start, cpu_start = time.perf_counter(), time.process_time()
    sample = fit(train)
    fitted, cpu_seconds = time.perf_counter(), time.process_time() - cpu_start
    samples = sample()
    facts = {
        "fit_seconds": fitted - start,
        "cpu_seconds": cpu_seconds,
        "sample_seconds": time.perf_counter() - fitted,
        "versions": versions,
    }
    return Drawn(samples, facts)


def _versions(*packages: str) -> dict[str, str]:
    return {name: version(name) for name in ("pandas", "numpy", *packages)}


METHODS = {
    REAL: Method(real_rows, "training rows in place of samples"),
    INDEPENDENT: Method(independent_columns, "cells of training rows drawn column by column"),
    COPULA: Method(
        gaussian_copula,
        "empirical margins, extended rank likelihood, 40 sweeps; missing is a level",
    ),
    "arfpy": Method(
        script("mixed_tables_arfpy.py"),
        "defaults, no new round of forests once the time is up; missing text is a level, missing "
        "numbers are drawn from the known ones and have an indicator column; samples rounded to "
        "the training rows' decimals and clipped to their range",
        timed=True,
        external=True,
    ),
    "mostlyai-engine": Method(
        script("mixed_tables_mostlyai.py"),
        "defaults but for value_protection=False, which leaves rare values as they are",
        timed=True,
        external=True,
    ),
    ROUNDTRIP: Method(roundtrip, 'defaults, missing="model"', timed=True),
}
"""By their name in tables, cheap ones first."""
