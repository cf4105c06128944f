"""One fit and its scores, as every figure and table needs them."""

import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import joblib
import numpy as np

from roundtrip.data.images import are_images
from roundtrip.density import DensityEstimate, DensityWarning
from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.estimator import Roundtrip
from roundtrip.io.atomic import atomic_write
from roundtrip.io.model_file import plain
from roundtrip.options import fit_options
from roundtrip.reproduce.methods import DEFAULT, PAPER
from roundtrip.reproduce.request import Request
from roundtrip.reproduce.runs import environment

QUICK_EVALUATIONS = 600
"""Of G a row in quick runs, where nobody needs certainty."""

TOL, PAPER_TOL = 0.05, 0.2
"""Nats a row. The paper's networks are large: half the square of the error, 0.02, is what means
over rows may then be too low by."""


def settings_of(est: Any, *, pixels: int = 0) -> dict[str, Any]:
    """All settings of an estimator, "auto" replaced where it is known beforehand.

    `pixels` are the numbers an image, or 0 for tables.
    """
    settings = est.get_params(deep=not isinstance(est, Roundtrip))
    if isinstance(est, Roundtrip):
        settings |= vars(fit_options(settings, pixels=pixels))
    return {name: plain(value) for name, value in settings.items() if name != "verbose"}


def settings_name(est: Any, *, pixels: int = 0) -> str:
    """A short name for the settings, so that results of others are not taken for these.

    >>> settings_name(Roundtrip()) == settings_name(Roundtrip(noise="diagonal"))
    False
    """
    text = json.dumps(settings_of(est, pixels=pixels), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def file_name(key: Mapping[str, Any]) -> str:
    """A run's key as the name of a file, without its suffix.

    >>> file_name({"method": "Roundtrip (paper)", "seed": 0, "budget": 60.0})
    'Roundtrip__paper_-0-60'
    """
    parts = (f"{value:g}" if isinstance(value, float) else str(value) for value in key.values())
    return "".join(c if c.isalnum() or c in ".-" else "_" for c in "-".join(parts))


def fitted(
    request: Request, key: Mapping[str, Any], est: Any, X: np.ndarray, **arguments: Any
) -> tuple[Any, dict[str, Any]]:
    """The estimator after its fit, and how that went; from an earlier run if it was kept.

    What is kept is for this machine and this version: delete the folder `models` to fit anew.
    """
    path = request.folder / "models" / f"{file_name(key)}.joblib"
    if path.exists():
        return joblib.load(path)
    if "verbose" in est.get_params():
        est.set_params(verbose=0 if request.quiet else 1)
    record = timed_fit(est, X, max_time=key["budget"], **arguments)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        joblib.dump((est, record), temporary)
    return est, record


def timed_fit(est: Any, X: np.ndarray, **arguments: Any) -> dict[str, Any]:
    """Fit, and tell how long it took and why it ended. An interrupted fit is no result."""
    start, cpu_start = time.perf_counter(), time.process_time()
    est.fit(X, **arguments)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    stopped_by = getattr(est, "stopped_by_", None)
    if stopped_by == "interrupt":
        raise KeyboardInterrupt
    return {
        "fit_seconds": seconds,
        "cpu_seconds": cpu_seconds,  # far less than threads x seconds: other work was in the way
        "train_rows": len(X),
        "epochs": getattr(est, "n_iter_", None),
        "stopped_by": stopped_by,
        "parameters": settings_of(est, pixels=X[0].size if are_images(X) else 0),
        **environment(),  # a kept model may be scored in another one
    }


def tolerance(method: str) -> float:
    """Standard error that a row's log density is estimated to, in nats, by a Roundtrip method."""
    return PAPER_TOL if method == PAPER else TOL


def log_density(
    est: Any, rows: np.ndarray, *, quick: bool, tol: float
) -> tuple[np.ndarray, dict[str, Any]]:
    """Log densities of rows; of a Roundtrip model also how sure they are."""
    if not isinstance(est, Roundtrip):
        return est.score_samples(rows), {}
    estimate = estimate_density(
        est, rows, tol=tol, evaluations=QUICK_EVALUATIONS if quick else DEFAULT_EVALUATIONS
    )
    return estimate.log_density, {
        "tol": tol,
        "converged": float(estimate.converged.mean()),
        "median_std_error": float(np.median(estimate.std_error)),
        "latent_dim": est.latent_dim_,
        "latent_dims_tried": [list(pair) for pair in est.latent_dims_tried_.items()],
    }


def estimate_density(
    est: Roundtrip, rows: np.ndarray, *, tol: float, evaluations: int
) -> DensityEstimate:
    """Densities of rows; how many are not certain is in the result, not in a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        return est.density(rows, tol=tol, max_evaluations=evaluations)


def machine(records: Iterable[Mapping[str, Any]]) -> str:
    """What fits ran on, for people.

    >>> machine([{"threads": 1, "cores": 2, "torch": "2.6"}, {"threads": 2, "cores": 2}])
    '1 or 2 threads on 2 cores, torch 2.6'
    """

    def distinct(name: str) -> str:
        return " or ".join(sorted({str(record[name]) for record in records if name in record}))

    records = list(records)
    plural = "" if distinct("threads") == "1" else "s"
    return (
        f"{distinct('threads')} thread{plural} on {distinct('cores')} cores, "
        f"torch {distinct('torch')}"
    )


def certainty(records: Iterable[Mapping[str, Any]]) -> str:
    """How well the log densities of Roundtrip methods are known, for people.

    >>> certainty([{"method": "KDE"}, {"method": "Roundtrip", "tol": 0.05}])
    'log densities of a row to 0.05 nats for Roundtrip'
    """
    names = {DEFAULT: DEFAULT, PAPER: "the paper's preset"}
    known = sorted({(record["method"], record["tol"]) for record in records if "tol" in record})
    if not known:
        return "log densities are exact"
    parts = [f"{tol:g} for {names[method]}" for method, tol in known]
    return f"log densities of a row to {', '.join(parts).replace(' for', ' nats for', 1)}"


def told(record: Mapping[str, Any]) -> str:
    """How far the training of a record came, for people."""
    ends = {
        "max_time": "the time was up",
        "patience": "it no longer improved",
        "max_epochs": "it had all its epochs",
    }
    reason = ends.get(record["stopped_by"], record["stopped_by"])
    return f"{record['epochs']} epochs in {record['fit_seconds']:.0f} s, then {reason}"
