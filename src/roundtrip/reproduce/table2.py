"""Table 2: precision at k of outlier detection; training rows contain outliers."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from roundtrip.datasets import Dataset, load_forestcover, load_mammography, load_shuttle
from roundtrip.density import DensityWarning
from roundtrip.outliers.detector import RoundtripDetector
from roundtrip.reproduce.fits import machine, settings_name
from roundtrip.reproduce.methods import DEFAULT, PAPER
from roundtrip.reproduce.published import TABLE_2
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log, Runs

DATASETS: dict[str, Callable[..., Dataset]] = {
    "Shuttle": load_shuttle,
    "Mammography": load_mammography,
    "ForestCover": load_forestcover,
}
LATENT_DIMS = {"Shuttle": 3, "Mammography": 3, "ForestCover": 4}
"""Those of the paper's Table S2."""

WHOLE = "Shuttle, all rows"
WHOLE_METHODS = ("OC-SVM", "Isolation Forest", DEFAULT)
"""Methods whose cost of fitting and scoring one whole table is measured."""

BUDGET, PAPER_BUDGET, QUICK_BUDGET = 60.0, 120.0, 2.0
"""Seconds per fit of the methods with a time limit: the flows and the paper's preset."""

QUICK_ROWS, QUICK_TEST_ROWS = 2000, 500


def table2(request: Request) -> str:
    """Fit and score every detector on every data set; returns the page in Markdown."""
    from roundtrip.reproduce.outlier_methods import OUTLIER_METHODS

    request = replace(request, seeds=request.seeds or (1 if request.quick else 3))
    assert request.seeds is not None
    runs, methods = request.runs(), request.chosen(OUTLIER_METHODS)
    for load in DATASETS.values():  # raises now if one is missing
        load(data_home=request.data_home, download=request.download)
    total = request.seeds * len(DATASETS) * len(methods) + len(_of_whole(methods))
    log = Log(total, quiet=request.quiet)
    for seed in range(request.seeds):
        for dataset in DATASETS:
            for method in methods:
                key = _key(request, dataset, method, seed)
                log.run(runs, key, partial(_measure_alone, request, key), "precision_at_k")
    for method in _of_whole(methods):
        key = _key(request, WHOLE, method, 0)
        log.run(runs, key, partial(_measure_alone, request, key), "fit_seconds")
    text = _page(request, runs, methods)
    request.write_text("table2.md", text)
    return text


def _of_whole(methods: Sequence[str]) -> list[str]:
    return [method for method in methods if method in WHOLE_METHODS]


def _key(request: Request, dataset: str, method: str, seed: int) -> dict[str, Any]:
    from roundtrip.reproduce.outlier_methods import make_outlier_method

    latent_dim = LATENT_DIMS[_source(dataset)]
    detector = make_outlier_method(
        method, seed=seed, latent_dim=latent_dim, quick=request.quick
    ).detector
    settings = settings_name(detector)
    if isinstance(detector, RoundtripDetector):
        settings += "-every kind"
    return {
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "budget": request.seconds(method, own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET),
        "settings": settings,
    }


def _source(dataset: str) -> str:
    return "Shuttle" if dataset == WHOLE else dataset


def _measure_alone(request: Request, key: Mapping[str, Any]) -> dict[str, Any]:
    """Measure one fit in a process of its own, so that its memory is that of the method."""
    if request.quick:  # starting 30 processes takes longer than the fits
        return _measure(key, request.data_home, request.download, request.quick)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(
            _measure, dict(key), request.data_home, request.download, request.quick
        ).result()


def _measure(
    key: Mapping[str, Any], data_home: Path | None, download: bool, quick: bool
) -> dict[str, Any]:
    from roundtrip.reproduce.outlier_methods import make_outlier_method

    dataset, seed = key["dataset"], key["seed"]
    data = DATASETS[_source(dataset)](data_home=data_home, random_state=seed, download=download)
    rows, labels = data.fitting_rows()
    assert labels is not None
    assert data.test_labels is not None
    test, outlier = data.test, data.test_labels
    if dataset == WHOLE:
        rows = test = np.concatenate([rows, test])
        outlier = np.concatenate([labels, outlier])
    if quick:
        rows, test, outlier = rows[:QUICK_ROWS], test[:QUICK_TEST_ROWS], outlier[:QUICK_TEST_ROWS]
    latent_dim = LATENT_DIMS[_source(dataset)]
    method = make_outlier_method(key["method"], seed=seed, latent_dim=latent_dim, quick=quick)
    memory = _memory_now()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        start = time.perf_counter()
        outlier_score = method.fit(rows, key["budget"])
        fitted = time.perf_counter()
        refuse_interrupted(method.detector)
        scores = outlier_score(test)
        scored = time.perf_counter()
    added = _memory("VmHWM") - memory
    return {
        "train_rows": len(rows),
        "test_rows": len(test),
        "test_outliers": int(outlier.sum()),
        "precision_at_k": precision_at_k(scores, outlier),
        "auroc": float(roc_auc_score(outlier, scores)),
        "average_precision": float(average_precision_score(outlier, scores)),
        "fit_seconds": fitted - start,
        "score_seconds": scored - fitted,
        "epochs": getattr(method.detector, "n_iter_", None),
        "memory_mb": added / 1e6 if math.isfinite(added) else None,
    }


def refuse_interrupted(detector: Any) -> None:
    """Raise a `KeyboardInterrupt` if a fit was interrupted: an unfinished fit is no result."""
    if getattr(getattr(detector, "estimator_", detector), "stopped_by_", None) == "interrupt":
        raise KeyboardInterrupt


def precision_at_k(scores: np.ndarray, outlier: np.ndarray) -> float:
    """Share of outliers among the k rows with the highest scores, k the number of outliers.

    >>> import numpy as np
    >>> precision_at_k(np.array([3.0, 2.0, 1.0, 0.0]), np.array([1, 0, 1, 0]))
    0.5
    """
    k = int(outlier.sum())
    return float(outlier[np.argsort(-scores, kind="stable")[:k]].mean())


def _memory(entry: str) -> float:
    """Memory of this process in bytes, now (VmRSS) or at its peak (VmHWM); NaN if unknown.

    On Linux the peak of `getrusage` includes that of the parent process, so it is not used.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [line for line in lines if line.startswith(f"{entry}:")]
    return 1024.0 * float(found[0].split()[1]) if found else math.nan


def _memory_now() -> float:
    """Memory of this process in bytes; resets its peak, so that loading data does not count."""
    clear_refs = Path("/proc/self/clear_refs")
    if clear_refs.exists():
        clear_refs.write_text("5")
    return _memory("VmRSS")


def _page(request: Request, runs: Runs, methods: Sequence[str]) -> str:
    from roundtrip.reproduce.outlier_methods import HOW_THEY_ARE_USED

    seeds = request.seeds
    assert seeds is not None

    def of(method: str, dataset: str, name: str) -> np.ndarray:
        return np.array([runs[_key(request, dataset, method, seed)][name] for seed in range(seeds)])

    def cell(values: np.ndarray) -> str:
        if len(values) == 1:
            return f"{values[0]:.3f}"
        return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"

    def table(name: str) -> str:
        rows = []
        for method in methods:
            each = [of(method, dataset, name) for dataset in DATASETS]
            rows.append([method, *map(cell, each), f"{np.mean(each):.3f}"])
        return markdown_table(["method", *DATASETS, "mean"], rows)

    published = [
        [method, *(f"{values[dataset]:.3f}" for dataset in DATASETS)]
        for method, values in TABLE_2.items()
    ]
    costs = [
        [
            method,
            *(
                f"{of(method, d, 'fit_seconds').mean():.1f} / "
                f"{of(method, d, 'score_seconds').mean():.1f} / "
                f"{np.nanmean(of(method, d, 'memory_mb').astype(float)):.0f}"
                for d in DATASETS
            ),
        ]
        for method in methods
    ]
    limits = request.limits(own=BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET)
    shown = [
        runs[_key(request, dataset, method, seed)]
        for dataset in DATASETS
        for method in methods
        for seed in range(seeds)
    ]
    settings = (
        f"{seeds} seed(s), mean ± standard error over seeds. Training rows hold outliers, labels "
        f"are not shown. Flows and the paper's preset: {limits}. {HOW_THEY_ARE_USED} "
        f"{machine(shown)}."
    )
    if request.quick:
        settings += (
            f" Quick run on {QUICK_ROWS} training and {QUICK_TEST_ROWS} test rows; it means little."
        )
    parts = [
        "# Table 2: outlier detection",
        settings,
        "## Precision at k, k the number of outliers among the test rows\n\n"
        + table("precision_at_k"),
        "## The paper's figures\n\n" + markdown_table(["method", *DATASETS], published),
        "## Area under the ROC curve\n\n" + table("auroc"),
        "## Average precision\n\n" + table("average_precision"),
        "## Cost: seconds to fit / seconds to score the test rows / megabytes\n\n"
        + markdown_table(["method", *DATASETS], costs),
    ]
    if whole := _of_whole(methods):
        rows = []
        for method in whole:
            record = runs[_key(request, WHOLE, method, 0)]
            memory = record["memory_mb"]
            rows.append(
                [
                    method,
                    f"{record['fit_seconds']:.1f}",
                    f"{record['score_seconds']:.1f}",
                    "" if memory is None else f"{memory:.0f}",
                ]
            )
        parts.append(
            f"## Cost of all of Shuttle, {record['train_rows']:,} rows fitted and "
            f"{record['test_rows']:,} scored\n\n"
            + markdown_table(["method", "fit, s", "score, s", "megabytes"], rows)
        )
    if PAPER in methods:
        for dataset in DATASETS:
            epochs = ", ".join(f"{value:.0f}" for value in of(PAPER, dataset, "epochs"))
            parts.append(f"Epochs of the paper's preset on {dataset}: {epochs} of its 200.")
    return "\n\n".join(parts) + "\n"
