"""Fits and scores that all figures and tables share."""

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
from roundtrip.model.noise import Mixture
from roundtrip.options import COMPONENT_PARAMETERS, fit_options
from roundtrip.reproduce.methods import DEFAULT, PAPER
from roundtrip.reproduce.request import Request
from roundtrip.reproduce.runs import environment

NOT_OF_FIT = {"columns": None, "missing": "ignore", "part_encoder": "auto", "clean": False}
"""Settings that fits to complete rows of numbers do not depend on, and their defaults."""

QUICK_EVALUATIONS = 600
"""Evaluations of G per row in quick runs, which need no precise densities."""

TOL, PAPER_TOL = 0.05, 0.2
"""Standard errors per row, in nats. The paper's networks are large and estimated less
precisely; means over rows may be too low by half the square of the error, 0.02."""


def settings_of(est: Any, *, pixels: int = 0) -> dict[str, Any]:
    """All settings of an estimator, with "auto" replaced where its value is known before the fit.

    Parameters
    ----------
    est : estimator
        A `Roundtrip` or another estimator of scikit-learn's kind.
    pixels : int, default=0
        Numbers per image; 0 for tables.
    """
    settings = est.get_params(deep=not isinstance(est, Roundtrip))
    if isinstance(est, Roundtrip):
        options = vars(fit_options(settings, pixels=pixels))
        settings |= {name: options[name] for name in ("latent_dim", "max_epochs")}
        settings |= {name: options[name] for name in COMPONENT_PARAMETERS}
    unsaid = {name for name, value in NOT_OF_FIT.items() if settings.get(name, value) == value}
    known = {
        name: plain(value) for name, value in settings.items() if name not in {"verbose", *unsaid}
    }
    # Training does not see the share of rows outside of the data.
    if isinstance(noise := settings.get("noise"), Mixture):
        known["noise"]["settings"].pop("outside_share")
        if noise.outside_share != Mixture.outside_share:
            known["outside_share"] = noise.outside_share
    return known


def settings_name(est: Any, *, pixels: int = 0) -> str:
    """Hash of the settings, part of a run's key: other settings give another run.

    >>> settings_name(Roundtrip()) == settings_name(Roundtrip(noise="diagonal"))
    False
    """
    text = json.dumps(settings_of(est, pixels=pixels), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def file_name(key: Mapping[str, Any]) -> str:
    """File name, without suffix, for a run's key.

    >>> file_name({"method": "Roundtrip (paper)", "seed": 0, "budget": 60.0})
    'Roundtrip__paper_-0-60'
    """
    parts = (f"{value:g}" if isinstance(value, float) else str(value) for value in key.values())
    return "".join(c if c.isalnum() or c in ".-" else "_" for c in "-".join(parts))


def fitted(
    request: Request, key: Mapping[str, Any], est: Any, X: np.ndarray, **arguments: Any
) -> tuple[Any, dict[str, Any]]:
    """Fit an estimator or load it from an earlier run; returns it and the record of its fit.

    Stored models are valid for this machine and version; delete the folder `models` to fit again.

    Parameters
    ----------
    request : Request
        Its folder holds the models.
    key : mapping
        Key of the run, which names the file.
    est : estimator
        Estimator to fit.
    X : numpy.ndarray
        Training rows.
    **arguments
        Further arguments of `fit`.
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
    """Fit, and record how long it took and why it ended; raises if the fit was interrupted."""
    start, cpu_start = time.perf_counter(), time.process_time()
    est.fit(X, **arguments)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    stopped_by = getattr(est, "stopped_by_", None)
    if stopped_by == "interrupt":
        raise KeyboardInterrupt
    return {
        "fit_seconds": seconds,
        "cpu_seconds": cpu_seconds,  # far less than threads x seconds if the machine was busy
        "train_rows": len(X),
        "epochs": getattr(est, "n_iter_", None),
        "stopped_by": stopped_by,
        "parameters": settings_of(est, pixels=X[0].size if are_images(X) else 0),
        **environment(),  # of the fit; a stored model may be scored in another environment
    }


def tolerance(method: str) -> float:
    """Standard error in nats to which a Roundtrip method estimates the log density of a row."""
    return PAPER_TOL if method == PAPER else TOL


def log_density(
    est: Any, rows: np.ndarray, *, quick: bool, tol: float
) -> tuple[np.ndarray, dict[str, Any]]:
    """Log densities of rows and, for a Roundtrip model, how precise they are."""
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
    """Densities of rows without a warning; the result says which have converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        return est.density(rows, tol=tol, max_evaluations=evaluations)


def machine(records: Iterable[Mapping[str, Any]]) -> str:
    """Threads, cores and version of torch that fits ran with, as a phrase.

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
    """Standard errors of the log densities of Roundtrip methods, as a phrase.

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
    """Number of epochs, time and reason of the end of a training, as a phrase."""
    ends = {
        "max_time": "the time was up",
        "patience": "it no longer improved",
        "max_epochs": "it had all its epochs",
    }
    reason = ends.get(record["stopped_by"], record["stopped_by"])
    return f"{record['epochs']} epochs in {record['fit_seconds']:.0f} s, then {reason}"
