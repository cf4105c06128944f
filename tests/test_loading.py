"""`load` gives whatever a file holds."""

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TINY

from roundtrip import (
    MLP,
    ModelFileError,
    Network,
    Roundtrip,
    RoundtripClassifier,
    RoundtripDetector,
    load,
)
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


class Mine(Roundtrip):
    """A user's subclass."""


def test_a_subclass_is_loaded_as_what_it_was_derived_from(mixture, tmp_path):
    Mine(latent_dim=2, **TINY).fit(mixture.X).save(tmp_path / "m.rt")
    assert type(load(tmp_path / "m.rt")) is Roundtrip


@dataclass(frozen=True)
class Residual(MLP):
    """A user's network with the name of one of the package."""


def test_a_users_class_is_not_taken_for_one_of_the_package(mixture, tmp_path):
    settings = TINY | {"network": Residual((8,), (8,))}
    Roundtrip(latent_dim=2, **settings).fit(mixture.X).save(tmp_path / "m.rt")
    with pytest.raises(ModelFileError, match=r"components=\[Residual\]"):
        load(tmp_path / "m.rt")
    assert type(load(tmp_path / "m.rt", components=[Residual]).network) is Residual


@dataclass(frozen=True)
class Tied(Network):
    """G and H share a matrix within themselves."""

    names: object = None

    def _tied(self, inputs, outputs):
        first = torch.nn.Linear(inputs, inputs)
        again = torch.nn.Linear(inputs, inputs)
        again.weight = first.weight
        return torch.nn.Sequential(first, torch.nn.Tanh(), again, torch.nn.Linear(inputs, outputs))

    def generator(self, sizes, outputs, *, rng):
        return self._tied(sizes.latent_dim, outputs)

    def encoder(self, sizes, outputs, *, rng):
        return self._tied(sizes.features, outputs)


def test_weights_that_are_shared_are_saved(mixture, tmp_path):
    est = Roundtrip(latent_dim=2, **(TINY | {"network": Tied()})).fit(mixture.X)
    est.save(tmp_path / "m.rt")
    again = load(tmp_path / "m.rt", components=[Tied])
    np.testing.assert_array_equal(again.transform(mixture.X[:5]), est.transform(mixture.X[:5]))


def test_a_setting_that_no_file_holds_is_refused(mixture, tmp_path):
    est = Roundtrip(latent_dim=2, **(TINY | {"network": Tied(names={1, 2})})).fit(mixture.X)
    with pytest.raises(ValueError, match="can't be saved"):
        est.save(tmp_path / "m.rt")
    assert not (tmp_path / "m.rt").exists()


def test_labels_of_columns_survive(mixture, tmp_path):
    frame = pd.DataFrame(mixture.X, columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    est = Roundtrip(latent_dim=2, **TINY).fit(frame)
    est.save(tmp_path / "m.rt")
    assert list(load(tmp_path / "m.rt").sample(2, 0).columns) == list(est.sample(2, 0).columns)
    dates = pd.DataFrame(mixture.X, columns=pd.to_datetime(["2020-01-01", "2020-01-02"]))
    with pytest.raises(ValueError, match="must be text"):
        Roundtrip(latent_dim=2, **TINY).fit(dates).save(tmp_path / "d.rt")
    assert not (tmp_path / "d.rt").exists()


def test_a_pickle_holds_the_model_once(mixture):
    est = Roundtrip(latent_dim=2, **TINY).fit(mixture.X)
    est.score_samples(mixture.X[:3])
    model = len(pickle.dumps(est.model_))
    assert len(pickle.dumps(est)) < 1.3 * model + 20_000
    again = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(
        again.score_samples(mixture.X[:3]), est.score_samples(mixture.X[:3])
    )
