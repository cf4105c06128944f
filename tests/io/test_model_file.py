import json
import os
import stat

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TINY, TINY_ADVERSARIAL
from safetensors import safe_open
from safetensors.torch import save_file

from roundtrip import MLP, ModelFileError, Roundtrip, load
from roundtrip.io.model_file import read_model_file, write_model_file


@pytest.fixture(scope="module")
def model_file(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.rt"
    fitted.save(path)
    return path


def test_round_trip_is_identical(fitted, mixture, model_file):
    again = load(model_file)
    X = mixture.X[:50]
    for method in ("importance", "adaptive"):
        np.testing.assert_array_equal(
            again.density(X, method=method).log_density,
            fitted.density(X, method=method).log_density,
        )
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(again.sample(5, random_state=0), fitted.sample(5, random_state=0))
    assert again.get_params() == fitted.get_params()
    assert again.options_ == fitted.options_
    assert again.history_ == fitted.history_
    np.testing.assert_array_equal(again.resolution_, fitted.resolution_)
    assert again.stopped_by_ == fitted.stopped_by_
    assert (again.n_iter_, again.best_epoch_) == (fitted.n_iter_, fitted.best_epoch_)
    assert not hasattr(again, "feature_names_in_")


def test_column_names_survive(mixture, tmp_path):
    frame = pd.DataFrame(mixture.X[:100], columns=["α", "b"])
    Roundtrip(**TINY).fit(frame).save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    assert list(again.feature_names_in_) == ["α", "b"]
    assert list(again.sample(2).columns) == ["α", "b"]
    assert again.score_samples(frame).shape == (100,)


def test_parameters_of_any_kind_survive(mixture, tmp_path):
    settings = TINY_ADVERSARIAL | {
        "network": MLP([np.int64(8), 8], (8, np.int32(8))),
        "latent_dim": np.int64(2),
        "objective": TINY_ADVERSARIAL["objective"].with_params(
            sigma_grid=np.geomspace(0.01, 1, 5), learning_rate=np.float32(1e-3)
        ),
        "random_state": np.random.RandomState(0),
        "device": torch.device("cpu"),
    }
    Roundtrip(**settings).fit(mixture.X[:100]).save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    assert again.network == MLP((8, 8), (8, 8))
    assert again.objective.sigma_grid == tuple(np.geomspace(0.01, 1, 5))
    assert again.fit(mixture.X[:100])


def test_header_is_json_with_everything(model_file):
    with safe_open(model_file, framework="pt") as file:
        metadata = file.metadata()
    content = json.loads(metadata["content"])
    assert metadata["version"] == "4"
    assert content["class"] == "Roundtrip"
    assert content["parameters"]["objective"] == {
        "component": "Likelihood",
        "settings": TINY["objective"].get_params(),
    }


@pytest.mark.parametrize("kind", ["flip", "truncate"])
def test_damaged_files_are_refused_or_harmless(kind, fitted, mixture, model_file, tmp_path):
    rng = np.random.default_rng(0)
    original = model_file.read_bytes()
    expected = fitted.score_samples(mixture.X[:3])
    damaged = tmp_path / "damaged.rt"
    refused = 0
    for _ in range(200):
        content = bytearray(original)
        if kind == "flip":
            content[rng.integers(len(content))] ^= 1 << rng.integers(8)
        else:
            content = content[: rng.integers(len(content))]
        damaged.write_bytes(content)
        try:
            again = load(damaged)
        except ModelFileError:
            refused += 1
        else:
            np.testing.assert_array_equal(again.score_samples(mixture.X[:3]), expected)
    assert refused >= 195


def test_every_byte_of_the_header_counts(fitted, mixture, model_file, tmp_path):
    """The header is a small part of the file: flips there get a test of their own."""
    rng = np.random.default_rng(1)
    original = model_file.read_bytes()
    header = 8 + int.from_bytes(original[:8], "little")
    expected = fitted.score_samples(mixture.X[:3])
    damaged = tmp_path / "damaged.rt"
    for place in rng.integers(header, size=200):
        content = bytearray(original)
        content[place] ^= 1 << rng.integers(8)
        damaged.write_bytes(content)
        try:
            again = load(damaged)
        except ModelFileError:
            continue
        np.testing.assert_array_equal(again.score_samples(mixture.X[:3]), expected)
        assert again.get_params() == fitted.get_params()


@pytest.mark.parametrize("content", [b"", b"x", b"hello, world" * 100, b"\xff" * 64])
def test_foreign_files(content, tmp_path):
    path = tmp_path / "foreign.rt"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"foreign\.rt"):
        load(path)


def test_foreign_safetensors_and_other_versions(tmp_path):
    path = tmp_path / "other.rt"
    save_file({"a": torch.zeros(2)}, path)
    with pytest.raises(ModelFileError, match="not a Roundtrip model"):
        load(path)
    metadata = {"format": "roundtrip-model", "version": "9"}
    save_file({"a": torch.zeros(2)}, path, metadata=metadata)
    with pytest.raises(ModelFileError, match="version '9', this release reads version 4: a newer"):
        load(path)
    save_file({"a": torch.zeros(2)}, path, metadata=metadata | {"version": "1"})
    with pytest.raises(ModelFileError, match=r"version '1', .* fit it again, or use"):
        load(path)
    save_file({"a": torch.zeros(2)}, path, metadata=metadata | {"version": "2"})
    with pytest.raises(ModelFileError, match=r"version '2', .* fit it again$"):
        load(path)


def test_overwriting_the_file_does_not_change_a_loaded_model(fitted, mixture, tmp_path):
    path, other = tmp_path / "model.rt", tmp_path / "other.rt"
    fitted.save(path)
    again = load(path)
    Roundtrip(**(TINY | {"random_state": 5}), latent_dim=2).fit(mixture.X * 7 + 3).save(other)
    content = other.read_bytes()
    with path.open("rb+") as file:  # in place, as cp does
        file.write(content)
    np.testing.assert_array_equal(
        again.score_samples(mixture.X[:10]), fitted.score_samples(mixture.X[:10])
    )


@pytest.mark.parametrize("change", ["extra parameter", "missing key", "other widths", "class"])
def test_well_formed_files_of_another_release(change, model_file, tmp_path):
    content, tensors = read_model_file(model_file)
    if change == "extra parameter":
        content["parameters"]["colour"] = "red"
    elif change == "class":
        content["class"] = "RoundtripImputer"
    elif change == "missing key":
        del content["latent_dim"]
    else:
        content["options"]["network"]["settings"]["width"] = 3
    write_model_file(tmp_path / "model.rt", content, tensors)
    with pytest.raises(ModelFileError, match="does not fit this release"):
        load(tmp_path / "model.rt")


def test_missing_file_folder_and_unwritable_path(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.rt"):
        load(tmp_path / "absent.rt")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(OSError, match="no/such/folder"):
        fitted.save(tmp_path / "no/such/folder/model.rt")
    with pytest.raises(OSError, match="folder"):
        fitted.save(tmp_path)


def test_failed_save_keeps_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "model.rt"
    fitted.save(path)
    before = path.read_bytes()

    def full_disk(tensors, filename, metadata):
        with open(filename, "wb") as file:
            file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("roundtrip.io.model_file.save_file", full_disk)
    with pytest.raises(OSError, match="no space"):
        fitted.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.rt"]


def test_file_permissions_are_ordinary(fitted, tmp_path):
    old = os.umask(0o022)
    try:
        fitted.save(tmp_path / "model.rt")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "model.rt").stat().st_mode) == 0o644


def test_unfitted_estimator_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        Roundtrip().save(tmp_path / "model.rt")
    assert not list(tmp_path.iterdir())
