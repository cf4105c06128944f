"""The outlier detectors that table 2 compares."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pyod.models.ecod import ECOD
from pyod.models.knn import KNN
from pyod.models.lof import LOF
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from roundtrip.baselines import BASELINES
from roundtrip.estimator import Roundtrip
from roundtrip.outliers.default_density import MOST_ROWS
from roundtrip.outliers.detector import RoundtripDetector
from roundtrip.parameters import check_choice
from roundtrip.reproduce.methods import DEFAULT, PAPER, make_method

OUTLIER_METHODS = (
    "OC-SVM",
    "Isolation Forest",
    "RealNVP",
    "MAF",
    "ECOD",
    "k-NN",
    "LOF",
    PAPER,
    DEFAULT,
)

OC_SVM_ROWS = 45_000
"""Size of the sample that it is fitted to, because its cost grows with the square of the rows."""

PAPER_EVALUATIONS = 320
"""Evaluations of G per row for the paper's large networks: enough to rank rows."""

HOW_THEY_ARE_USED = (
    "Columns are standardised for OC-SVM, k-NN and LOF, as the flows do themselves; OC-SVM sees at "
    f"most {OC_SVM_ROWS:,} rows, Roundtrip {MOST_ROWS:,}; the paper's preset scores "
    f"a row by {PAPER_EVALUATIONS} evaluations of G. Otherwise settings are the defaults of their "
    "libraries."
)

Score = Callable[[np.ndarray], np.ndarray]


class OutlierMethod(NamedTuple):
    """An unfitted detector and the function that fits it."""

    detector: Any
    fit: Callable[[np.ndarray, float], Score]
    """Takes training rows and a time limit; gives a function whose values are high for outliers."""


def make_outlier_method(
    name: str, *, seed: int, latent_dim: int, quick: bool = False
) -> OutlierMethod:
    """Make one of `OUTLIER_METHODS`; `latent_dim` and `quick` are for the paper's preset.

    >>> make_outlier_method("ECOD", seed=0, latent_dim=3).detector.contamination
    0.1
    """
    check_choice("method", name, OUTLIER_METHODS)
    if name in BASELINES:
        flow = BASELINES[name](random_state=seed)
        return OutlierMethod(
            flow, lambda X, seconds: _negative(flow.fit(X, max_time=seconds).score_samples)
        )
    if name == PAPER:
        paper = make_method(name, seed=seed, latent_dim=latent_dim, scale="minmax", quick=quick)
        return OutlierMethod(paper, lambda X, seconds: _of_paper(paper.fit(X, max_time=seconds)))
    if name == "ECOD":
        ecod = ECOD()
        return OutlierMethod(ecod, lambda X, _: ecod.fit(X).decision_function)
    detector: Any
    if name in ("k-NN", "LOF"):
        detector = make_pipeline(StandardScaler(), {"k-NN": KNN, "LOF": LOF}[name]())
        return OutlierMethod(detector, lambda X, _: detector.fit(X).decision_function)
    if name == "OC-SVM":
        detector = make_pipeline(StandardScaler(), OneClassSVM())
        rng = np.random.default_rng(seed)
        return OutlierMethod(
            detector,
            lambda X, _: _negative(detector.fit(rng.permutation(X)[:OC_SVM_ROWS]).score_samples),
        )
    if name == "Isolation Forest":
        detector = IsolationForest(random_state=seed)
    else:
        detector = RoundtripDetector(random_state=seed)
    return OutlierMethod(detector, lambda X, _: _negative(detector.fit(X).score_samples))


def _negative(score: Score) -> Score:
    return lambda X: -score(X)


def _of_paper(est: Roundtrip) -> Score:
    return lambda X: -est.density(X, tol=0.1, max_evaluations=PAPER_EVALUATIONS).log_density
