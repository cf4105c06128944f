"""PyOD's contract for a detector, on its generated data."""

import numpy as np
import pandas as pd
import pytest
from pyod.utils.data import generate_data
from pyod.utils.utility import precision_n_scores
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from roundtrip.outliers.default_density import default_density
from roundtrip.outliers.pyod import RoundtripOD

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def test_settings_reach_the_detector(data):
    clf = RoundtripOD(estimator=brief(), sigma=1.0, trim=False, random_state=0).fit(data[0])
    assert clf.detector_.blurred_.sigma == 1.0
    assert clf.detector_.n_trimmed_ == 0


def brief():
    return default_density(2).set_params(max_epochs=1, objective__min_steps_per_epoch=30)


@pytest.fixture(scope="module")
def data():
    return generate_data(n_train=200, n_test=100, n_features=2, contamination=0.1, random_state=42)


@pytest.fixture(scope="module")
def fitted(data):
    return RoundtripOD(contamination=0.1, random_state=0).fit(data[0])


def test_parameters(fitted):
    for name in ("decision_scores_", "labels_", "threshold_", "_mu", "_sigma"):
        assert getattr(fitted, name) is not None


def test_train_scores(fitted, data):
    assert len(fitted.decision_scores_) == len(data[0])
    assert roc_auc_score(data[2], fitted.decision_scores_) >= 0.95


def test_prediction_scores(fitted, data):
    scores = fitted.decision_function(data[1])
    assert scores.shape == (len(data[1]),)
    assert roc_auc_score(data[3], scores) >= 0.95
    assert precision_n_scores(data[3], scores) >= 0.8


def test_prediction_labels(fitted, data):
    labels = fitted.predict(data[1])
    assert labels.shape == data[3].shape
    assert set(labels) <= {0, 1}
    assert fitted.labels_.sum() == pytest.approx(20, abs=2)


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities(fitted, data, method):
    probability = fitted.predict_proba(data[1], method=method)
    assert probability.shape == (len(data[1]), 2)
    assert ((probability >= 0) & (probability <= 1)).all()
    order = np.argsort(fitted.decision_function(data[1]))
    assert (np.diff(probability[order, 1]) >= 0).all()
    default = fitted.predict_proba(data[1])
    assert default.shape == probability.shape


def test_probability_of_an_unknown_kind_is_refused(fitted, data):
    with pytest.raises(ValueError, match="something"):
        fitted.predict_proba(data[1], method="something")


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_confidence(fitted, data, method):
    labels, confidence = fitted.predict(data[1], return_confidence=True)
    np.testing.assert_array_equal(fitted.predict_confidence(data[1]), confidence)
    assert labels.shape == confidence.shape == data[3].shape
    assert ((confidence >= 0) & (confidence <= 1)).all()
    _, confidence = fitted.predict_proba(data[1], method=method, return_confidence=True)
    assert ((confidence >= 0) & (confidence <= 1)).all()


def test_rejection(fitted, data):
    labels = fitted.predict_with_rejection(data[1], return_stats=False, c_r=0.1)
    assert labels.shape == data[3].shape
    assert set(labels) <= {-2, 0, 1}
    again, stats = fitted.predict_with_rejection(data[1], return_stats=True, c_r=0.1)
    np.testing.assert_array_equal(again, labels)
    assert len(stats) == 3


def test_fit_predict(data):
    labels = RoundtripOD(contamination=0.1, estimator=brief(), random_state=0).fit_predict(data[0])
    assert labels.sum() == pytest.approx(20, abs=2)


@pytest.mark.parametrize("normalized", [False, True])
def test_rank(fitted, data, normalized):
    ranks = fitted._predict_rank(data[1], normalized=normalized)
    assert ranks.shape == data[3].shape
    order = rankdata(fitted.decision_function(data[1]))
    assert np.corrcoef(ranks, order)[0, 1] > 0.9
    if normalized:
        assert ((ranks >= 0) & (ranks <= 1)).all()


def test_clone(fitted):
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()


def test_saved_and_loaded_by_joblib(fitted, data, tmp_path):
    import joblib

    joblib.dump(fitted, tmp_path / "clf.joblib")
    again = joblib.load(tmp_path / "clf.joblib")
    np.testing.assert_array_equal(
        again.decision_function(data[1]), fitted.decision_function(data[1])
    )


def test_column_names_are_kept(data):
    X = pd.DataFrame(data[0], columns=["height", "weight"])
    clf = RoundtripOD(estimator=brief(), random_state=0).fit(X)
    assert clf.decision_function(X).shape == (len(X),)
    assert set(clf.detector_.explain(X[:2]).named(1)[0]) <= {"height", "weight"}
