"""`load` gives whatever a file holds."""

import numpy as np
import pytest
from conftest import TINY

from roundtrip import ModelFileError, Roundtrip, RoundtripClassifier, RoundtripDetector, load
from roundtrip.io.model_file import read_model_file, write_model_file


@pytest.fixture(scope="module")
def files(fitted, mixture, tmp_path_factory):
    """A file of each kind and what was saved in it."""
    folder = tmp_path_factory.mktemp("files")
    X = mixture.X[:100]
    saved = {
        "density": fitted,
        "classifier": RoundtripClassifier(Roundtrip(**TINY)).fit(X, X[:, 0] > 0),
        "detector": RoundtripDetector(
            estimator=Roundtrip(**TINY, noise="isotropic"), trim=False, random_state=0
        ).fit(X),
    }
    for name, each in saved.items():
        each.save(folder / f"{name}.rt")
    return {name: (folder / f"{name}.rt", each) for name, each in saved.items()}


QUESTIONS = {
    "density": lambda est, X: est.score_samples(X),
    "classifier": lambda est, X: est.predict_proba(X),
    "detector": lambda est, X: est.p_value(X),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_file_is_what_was_saved(files, name, mixture):
    path, saved = files[name]
    again = load(path, device="cpu")
    assert type(again) is type(saved)
    X = mixture.X[:10]
    np.testing.assert_array_equal(QUESTIONS[name](again, X), QUESTIONS[name](saved, X))
    assert again.n_features_in_ == 2
    of_density, before = (getattr(each, "estimator_", each) for each in (again, saved))
    assert of_density.options_ == before.options_
    again.save(path.with_suffix(".again"))
    assert read_model_file(path.with_suffix(".again"))[0] == read_model_file(path)[0]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_loaded_one_can_be_fitted_again(files, name, mixture):
    path, _ = files[name]
    X = mixture.X[:60]
    again = load(path)
    again.fit(X, X[:, 1] > 0)
    np.testing.assert_array_equal(
        QUESTIONS[name](again, X[:5]), QUESTIONS[name](again.fit(X, X[:, 1] > 0), X[:5])
    )


def test_a_saved_density_becomes_a_detector(files, mixture, monkeypatch):
    monkeypatch.setattr("roundtrip.outliers.scorer.DRAWS", 50)
    path, fitted = files["density"]
    detector = RoundtripDetector.from_density(load(path))
    np.testing.assert_allclose(
        detector.score_samples(mixture.X[:5]), fitted.score_samples(mixture.X[:5])
    )


def test_a_file_of_another_class_is_refused(files, tmp_path):
    content, tensors = read_model_file(files["classifier"][0])
    write_model_file(tmp_path / "model.rt", content | {"class": "Roundtrip"}, tensors)
    with pytest.raises(ModelFileError, match="does not fit this release"):
        load(tmp_path / "model.rt")
