"""Model files and checkpoints with a right checksum and content that no fit gives."""

import hashlib
import io
import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from roundtrip import (
    CheckpointError,
    Likelihood,
    MixturePrior,
    ModelFileError,
    Residual,
    Roundtrip,
    RoundtripClassifier,
    RoundtripDetector,
    load,
)
from roundtrip.io.model_file import FORMAT, FORMAT_VERSION, read_model_file, write_model_file
from roundtrip.model.prior import GaussianMixture
from roundtrip.training.checkpoint import MAGIC, read_checkpoint

SMALL = {
    "max_epochs": 1,
    "objective": Likelihood(min_steps_per_epoch=2),
    "network": Residual(8, 1),
    "prior": MixturePrior(2),
    "tol": 0.5,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Content and tensors of a density, a classifier and a detector."""
    folder = tmp_path_factory.mktemp("files")
    X = np.random.default_rng(0).normal(size=(60, 2))
    density = Roundtrip(**SMALL).fit(X)
    density.model_.prior = GaussianMixture(
        torch.tensor([0.4, 0.6]), torch.zeros(2, density.latent_dim_), torch.eye(2).expand(2, 2, 2)
    )
    held = {
        "density": density,
        "classifier": RoundtripClassifier(Roundtrip(**SMALL)).fit(X, X[:, 0] > 0),
        "detector": RoundtripDetector.from_density(density),
    }
    for name, each in held.items():
        each.save(folder / f"{name}.rt")
    return {name: read_model_file(folder / f"{name}.rt") for name in held}


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(content, tensors):
        for step in path:
            content = content[step]
        content[last] = value

    return change


def tensor(name, function):
    def change(content, tensors):
        tensors[name] = function(tensors[name].clone()).contiguous()

    return change


def with_first(value):
    def change(values):
        values.view(-1)[0] = value
        return values

    return change


def check_refused(parts, change, folder):
    content, tensors = json.loads(json.dumps(parts[0])), dict(parts[1])
    change(content, tensors)
    path = folder / "absurd.rt"
    write_model_file(path, content, tensors)
    with pytest.raises(ModelFileError, match=r"absurd\.rt"):
        load(path)


DENSITY = {
    "NaN weights": tensor("model.generator.first.weight", with_first(math.nan)),
    "infinite weights": tensor("model.generator.first.weight", with_first(math.inf)),
    "prior sums to 10": tensor("model.prior.weights", lambda w: 10 * w),
    "negative weight of the prior": tensor("model.prior.weights", lambda w: w.new([-0.5, 1.5])),
    "short prior": tensor("model.prior.weights", lambda w: w[:1]),
    "no Cholesky factor": tensor("model.prior.factors", lambda f: -f),
    "short scale": tensor("schema.scale", lambda s: s[:1]),
    "negative scale": tensor("schema.scale", lambda s: -s),
    "scale 0": tensor("schema.scale", lambda s: 0 * s),
    "NaN shift": tensor("schema.shift", with_first(math.nan)),
    "shift of another type": tensor("schema.shift", lambda s: s.to(torch.int8)),
    "missing cells of another type": tensor("schema.incomplete", lambda s: s.double()),
    "one rounding": put("schema", "rounding", []),
    "a negative step": put("schema", "rounding", 0, "step", -1.0),
    "a NaN step": put("schema", "rounding", 0, "step", math.nan),
    "low above high": put("schema", "rounding", 0, "low", 1e9),
    "widths of no points": put("schema", "rounding", 0, "widths", [1.0]),
    "no columns": put("schema", "form", "columns", []),
    "huge networks": put("options", "network", "settings", "width", 10**9),
    "huge codes": put("latent_dim", 10**9),
    "no codes": put("latent_dim", 0),
    "no list of codes": put("latent_dim", [2]),
    "negative seed": put("scoring_seed", -1),
    "text for a seed": put("scoring_seed", "one"),
    "history of other epochs": put("n_iter", 17),
    "history of text": put("history", "seconds", ["one"]),
    "no history": put("history", {}),
    "an unknown reason": put("stopped_by", "rain"),
    "gain NaN": put("prior_gain", math.nan),
    "parameters that are a list": put("parameters", []),
    "no schema": put("schema", None),
}


@pytest.mark.parametrize("change", DENSITY.values(), ids=DENSITY.keys())
def test_a_density_that_no_fit_gives_is_refused(change, files, tmp_path):
    check_refused(files["density"], change, tmp_path)


OTHERS = {
    "a count too many": ("classifier", put("class_count", [1, 2, 3])),
    "negative counts": ("classifier", put("class_count", [-1, 2])),
    "a class too few": ("classifier", put("classes", [0])),
    "priors that sum to 2": ("classifier", put("priors", [1.0, 1.0])),
    "a NaN score": ("detector", tensor("model_scores", with_first(math.nan))),
    "a threshold NaN": ("detector", put("offset", math.nan)),
}


@pytest.mark.parametrize(("kind", "change"), OTHERS.values(), ids=OTHERS.keys())
def test_a_decision_that_no_fit_gives_is_refused(kind, change, files, tmp_path):
    check_refused(files[kind], change, tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "{", "[" * 100_000, '{"class": 1}', "NaN"]
)
def test_content_that_is_no_model_is_refused(text, tmp_path):
    path = tmp_path / "absurd.rt"
    metadata = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "content": text,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    save_file({}, path, metadata=metadata)
    with pytest.raises(ModelFileError, match=r"absurd\.rt"):
        load(path)


def checkpoint_of(payload):
    return MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload


def saved(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def test_checkpoints_of_another_version_say_so(tmp_path):
    path = tmp_path / "fit.ckpt"
    path.write_bytes(checkpoint_of(saved({})).replace(b"checkpoint 1", b"checkpoint 2", 1))
    with pytest.raises(CheckpointError, match="checkpoint of version '2', this release reads"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "payload",
    [b"", b"x", b"PK\x03\x04", saved({}), saved([1]), saved({"seed": 1}), saved(None)[:-30]],
    ids=["empty", "letter", "archive", "no state", "list", "seed alone", "cut"],
)
def test_checkpoints_without_a_state_are_refused(payload, tmp_path):
    path = tmp_path / "fit.ckpt"
    path.write_bytes(checkpoint_of(payload))
    with pytest.raises(CheckpointError, match=r"fit\.ckpt"):
        read_checkpoint(path)


@pytest.mark.parametrize("tol", [1e300, math.inf, math.nan, 0.0, -1.0])
def test_impossible_tolerances_are_refused(tol, fitted, mixture):
    with pytest.raises(ValueError, match="tol must be a number above 0"):
        fitted.density(mixture.X[:2], tol=tol)
    with pytest.raises(ValueError, match="tol must be a number above 0"):
        fitted.density_mean(mixture.X[:2], tol=tol)
