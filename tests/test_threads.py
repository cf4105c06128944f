"""Filters of warnings belong to the process: what runs in one thread must leave them alone."""

import threading
import warnings

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from three_classes import TINY, three_gaussians

from roundtrip import Roundtrip, RoundtripClassifier, RoundtripDetector
from roundtrip.baselines import GaussianMixtureBaseline


@pytest.fixture
def filters_seen(monkeypatch):
    """Filters of warnings in force at each step of EM."""
    seen = []
    step = GaussianMixture._m_step

    def recorded(self, *args, **kwargs):
        seen.append(list(warnings.filters))
        return step(self, *args, **kwargs)

    monkeypatch.setattr(GaussianMixture, "_m_step", recorded)
    return seen


def scoring_of_classes():
    X, y = three_gaussians(60, seed=0)
    classifier = RoundtripClassifier(Roundtrip(**TINY), random_state=0).fit(X, y)
    return classifier.estimator_, lambda: classifier.posterior(X[:6] + 30)


def scoring_of_outliers():
    X, _ = three_gaussians(60, seed=0)
    detector = RoundtripDetector.from_density(Roundtrip(**TINY, random_state=0).fit(X))
    return detector.estimator_, lambda: detector.score_samples(X[:6] + 30)


@pytest.mark.parametrize("prepare", [scoring_of_classes, scoring_of_outliers])
def test_scoring_in_threads_leaves_filters_of_warnings_alone(prepare, monkeypatch):
    monkeypatch.setattr("roundtrip.outliers.scorer.DRAWS", 30)
    density, score = prepare()
    before, seen = list(warnings.filters), []
    density.model_.generator.register_forward_hook(
        lambda *_: seen.append(list(warnings.filters) == before)
    )
    threads = [threading.Thread(target=score) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen
    assert all(seen)
    assert list(warnings.filters) == before


@pytest.mark.parametrize("estimator", [Roundtrip(**TINY), GaussianMixtureBaseline(max_iter=3)])
def test_fits_leave_filters_of_warnings_alone(estimator, filters_seen):
    before = list(warnings.filters)
    estimator.fit(np.random.default_rng(0).normal(size=(300, 2)))
    assert filters_seen
    assert all(filters == before for filters in filters_seen)
