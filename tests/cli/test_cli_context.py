"""Conditional densities and images from the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run, succeed

from roundtrip import Roundtrip, load
from roundtrip.data.tables import read_table, write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Flowers with a label, a covariate and images, and a model of each."""
    folder = tmp_path_factory.mktemp("context")
    random = np.random.default_rng(0)
    kind = random.choice(["rose", "lily"], 200)
    height = random.uniform(1, 2, 200)
    shift = np.where(kind == "rose", 0.0, 50.0)
    frame = pd.DataFrame(
        {"a": random.normal(size=200) + shift, "b": random.normal(size=200), "kind": kind}
    ).assign(height=height, depth=-height, day=pd.Timestamp("2020-01-01"))
    frame.to_csv(folder / "flowers.csv", index=False)
    images = random.integers(0, 256, size=(60, 8, 8, 1), dtype=np.uint8)
    np.savez(folder / "images.npz", X=images, y=np.arange(60) % 3)
    np.save(folder / "images.npy", images)
    fit = ("fit", "--max-epochs", 1, "--seed", 0, "-q", "-o")
    flowers = folder / "flowers.csv"
    succeed(*fit, folder / "kind.rt", flowers, "--columns", "a,b", "--context", "kind")
    succeed(*fit, folder / "height.rt", flowers, "--columns", "a,b", "--context", "height,depth")
    succeed(*fit, folder / "none.rt", flowers, "--columns", "a,b")
    succeed(*fit, folder / "images.rt", folder / "images.npz", "--context", "y")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_scores_are_those_of_the_library(here, tmp_path):
    frame = pd.read_csv("flowers.csv")[:15]
    frame.to_csv(tmp_path / "few.csv", index=False)
    succeed("score", "kind.rt", tmp_path / "few.csv", "-o", tmp_path / "s.csv", "-q")
    expected = load("kind.rt").score_samples(frame[["a", "b"]], context=frame["kind"])
    np.testing.assert_allclose(read_table(tmp_path / "s.csv")["log_density"], expected)


def test_samples_follow_the_label(here, tmp_path):
    for kind, mean in (("rose", 0), ("lily", 50)):
        path = tmp_path / f"{kind}.csv"
        succeed("sample", "kind.rt", "-n", 300, "--context", kind, "--seed", 0, "-o", path)
        assert abs(read_table(path)["a"].median() - mean) < 10


def test_covariates_are_numbers_with_commas(here, tmp_path):
    succeed("sample", "height.rt", "-n", 3, "--context", "1.5,-1.5", "-o", tmp_path / "s.csv")
    assert read_table(tmp_path / "s.csv").shape == (3, 2)
    result = run("sample", "height.rt", "-n", 3, "--context", "tall,0")
    assert (result.exit_code, "numbers with commas" in result.stderr) == (2, True)


def test_the_context_is_left_out_of_the_features(here, tmp_path):
    frame = pd.read_csv("flowers.csv")[["a", "kind", "b"]]
    frame.to_csv(tmp_path / "flowers.csv", index=False)
    model = tmp_path / "m.rt"
    succeed(
        "fit", tmp_path / "flowers.csv", "--context", "kind", "--max-epochs", 1, "-q", "-o", model
    )
    assert list(load(model).feature_names_in_) == ["a", "b"]


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")  # of noise, after one epoch
def test_images_with_labels(here, tmp_path):
    est = load("images.rt")
    assert est.schema_.images.top == 255
    assert est.schema_.context.labels == (0, 1, 2)
    succeed("score", "images.rt", "images.npz", "-o", tmp_path / "s.csv", "-q", "--tol", 5)
    assert len(read_table(tmp_path / "s.csv")) == 60
    succeed("sample", "images.rt", "-n", 2, "--context", 1, "-o", tmp_path / "new.npy")
    images = read_table(tmp_path / "new.npy")
    assert (images.shape, images.dtype) == ((2, 8, 8, 1), np.uint8)
    for output in ((), ("-o", tmp_path / "new.csv")):
        result = run("sample", "images.rt", "-n", 2, "--context", 1, *output)
        assert (result.exit_code, ".npy" in result.stderr) == (2, True)


def test_info_tells_classes_and_images(here):
    facts = json.loads(succeed("info", "images.rt", "--json").stdout)
    assert facts["images"] == "8 x 8 x 1"
    assert facts["context"] == ["y"]
    assert facts["classes"] == [0, 1, 2]
    facts = json.loads(succeed("info", "height.rt", "--json").stdout)
    assert facts["context"] == ["height", "depth"]
    assert "classes" not in facts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", "kind.rt", "no_kind.csv"), "lacks kind"),
        (("score", "images.rt", "images.npy"), "no column names to find y by"),
        (("sample", "kind.rt", "-n", 1), "give --context (lily, rose)"),
        (("sample", "height.rt", "-n", 1), "give --context (covariates)"),
        (("sample", "none.rt", "-n", 1, "--context", "rose"), "fitted without one"),
        (("sample", "kind.rt", "-n", 1, "--context", "tulip"), "known are 'lily', 'rose'"),
        (("fit", "flowers.csv", "-o", "x.rt", "--context", "colour"), "lacks colour"),
        (("fit", "images.npz", "-o", "x.rt", "--context", "label"), "its arrays are X, y"),
        (("fit", "no_kind.csv", "-o", "x.rt", "--context", "b", "--outliers"), "leave out"),
        (("fit", "flowers.csv", "-o", "x.rt", "--columns", "a,b", "--context", "b"), "both name b"),
        (("fit", "images.npz", "-o", "x.rt", "--context", "X"), "one value per row"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(here, arguments, message):
    write_table(read_table("flowers.csv", ["a", "b"]), "no_kind.csv")
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert not (here / "x.rt").exists()


def test_a_context_without_names_is_for_python(here, tmp_path):
    frame = read_table("flowers.csv", ["a", "b"])
    est = Roundtrip(max_epochs=1, random_state=0).fit(frame, context=["x", "y"] * 100)
    est.save(tmp_path / "m.rt")
    result = run("score", tmp_path / "m.rt", "flowers.csv")
    assert (result.exit_code, "use it from Python" in result.stderr) == (2, True)


def test_labels_are_recognised_however_a_file_writes_them(here, tmp_path):
    """Labels 1.0 and 2.0 of an array are the 1 and 2 of a csv file and of a command line."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    np.savez(tmp_path / "d.npz", X=X, y=np.repeat([1.0, 2.0], 50)[:, None])
    model = tmp_path / "m.rt"
    succeed("fit", tmp_path / "d.npz", "--context", "y", "--max-epochs", 1, "-q", "-o", model)
    pd.DataFrame(X, columns=["a", "b"]).assign(y=1)[:5].to_csv(tmp_path / "d.csv", index=False)
    succeed("score", model, tmp_path / "d.csv", "-q", "-o", tmp_path / "s.csv")
    expected = load(model).score_samples(X[:5], context=1.0)
    np.testing.assert_allclose(read_table(tmp_path / "s.csv")["log_density"], expected)
    succeed("sample", model, "-n", 2, "--context", 1, "-o", tmp_path / "new.csv")


def test_the_papers_preset_for_images_is_that_of_images(here, monkeypatch):
    fitted = []

    def record(self, X, **_):
        fitted.append(self)
        raise ValueError("recorded")

    monkeypatch.setattr(Roundtrip, "fit", record)
    run("fit", "images.npz", "--preset", "paper", "--latent-dim", 7, "-o", "x.rt")
    assert fitted[0].get_params() == Roundtrip.paper_images(latent_dim=7, verbose=1).get_params()
