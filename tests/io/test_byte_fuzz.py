"""Readers of files, fed with changed bytes: they refuse in one line, or read what is there.

Each runs for ten minutes, or for ROUNDTRIP_FUZZ_SECONDS.
"""

import hashlib
import json
import resource
import struct
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from file_mutations import SECONDS, attempt, mutated, until

from roundtrip import (
    CheckpointError,
    Likelihood,
    Mixture,
    ModelFileError,
    Residual,
    Roundtrip,
    load,
)
from roundtrip.data.tables import read_table, write_table
from roundtrip.io.model_file import read_model_file, write_model_file
from roundtrip.training.checkpoint import MAGIC, read_checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

MOST_MEMORY = 6 << 30
SMALL = {
    "max_epochs": 1,
    "objective": Likelihood(min_steps_per_epoch=2),
    "network": Residual(8, 1),
    "noise": Mixture(boxes=4),
    "tol": 0.5,
    "random_state": 0,
}


@pytest.fixture(autouse=True)
def bounded_memory():
    """A small file must not take the memory of the machine."""
    if sys.platform != "linux":
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def people(rows: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "height": rng.normal(1.7, 0.1, rows),
            "job": rng.choice(["baker", "smith", 'a "quoted", one'], rows),
            "born": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "count": rng.integers(0, 9, rows),
        }
    )
    frame.loc[::7, "height"] = None
    return frame


def written(folder, suffix: str) -> bytes:
    path = folder / f"original{suffix}"
    if suffix == ".npz":
        np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(20, 3)), y=np.arange(20))
    elif suffix == ".npy":
        np.save(path, np.random.default_rng(0).normal(size=(20, 3)))
    else:
        write_table(people(), path)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".npy", ".npz"])
def test_tables(suffix, tmp_path):
    rng = np.random.default_rng(0)
    original, path = written(tmp_path, suffix), tmp_path / f"changed{suffix}"
    read = 0
    for _ in until(SECONDS):
        path.write_bytes(mutated(original, rng))
        table, refusal = attempt(lambda: read_table(path), ValueError)
        assert refusal is None or str(path) in str(refusal)
        read += table is not None
        assert table is None or 0 not in table.shape
    assert read > 0


def test_model_files(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    path = tmp_path / "model.rt"
    Roundtrip(**SMALL).fit(X).save(path)
    expected, original = load(path).score_samples(X[:2]), path.read_bytes()
    for _ in until(SECONDS):
        path.write_bytes(mutated(original, rng))
        again, refusal = attempt(lambda: load(path), ModelFileError)
        assert refusal is None or str(path) in str(refusal)
        if again is not None:
            np.testing.assert_array_equal(again.score_samples(X[:2]), expected)


def test_content_of_model_files_under_a_right_checksum(tmp_path):
    rng = np.random.default_rng(2)
    path = tmp_path / "model.rt"
    Roundtrip(**SMALL).fit(people()).save(path)
    content, tensors = read_model_file(path)
    text = json.dumps(content).encode()
    for count in until(SECONDS):
        if count % 2:
            name = list(tensors)[rng.integers(len(tensors))]
            changed = content, tensors | {name: _other(tensors[name], rng)}
        else:
            try:
                changed = json.loads(mutated(text, rng)), tensors
            except (ValueError, RecursionError):
                continue
        write_model_file(path, *changed)
        score, refusal = attempt(lambda: _score_of_a_sample(path), ValueError)
        assert str(refusal)  # also of a parameter, such as tol, that scoring checks
        assert score is None or not np.isnan(score).any()


def _score_of_a_sample(path):
    again = load(path)
    return again.score_samples(again.sample(1, random_state=0))


def _other(tensor: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    match rng.integers(5):
        case 0:
            return tensor[..., :-1].contiguous() if tensor.ndim else tensor[None]
        case 1:
            return torch.full_like(tensor, torch.nan) if tensor.is_floating_point() else tensor[:0]
        case 2:
            return tensor.to(torch.int8)
        case 3:
            return torch.zeros(0)
        case _:
            values = tensor.numpy().copy()
            data = np.frombuffer(mutated(values.tobytes(), rng), dtype=np.uint8)
            size = min(values.nbytes, len(data))
            values.reshape(-1).view(np.uint8)[:size] = data[:size]
            return torch.from_numpy(values) if values.dtype != bool else tensor


@pytest.mark.parametrize("checksum", ["kept", "right"])
def test_checkpoints(checksum, tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "fit.ckpt"
    Roundtrip(**SMALL).fit(rng.normal(size=(60, 2)), checkpoint=path)
    original = path.read_bytes()
    payload = original[len(MAGIC) + 65 :]
    for _ in until(SECONDS):
        data = mutated(original, rng)
        if checksum == "right":
            changed = mutated(payload, rng)
            data = MAGIC + hashlib.sha256(changed).hexdigest().encode() + b"\n" + changed
        path.write_bytes(data)
        content, refusal = attempt(lambda: read_checkpoint(path), CheckpointError)
        assert refusal is None or str(path) in str(refusal)
        assert content is None or isinstance(content["states"], dict)


def test_headers_of_model_files(tmp_path):
    """Lengths and offsets of the header may say anything."""
    rng = np.random.default_rng(4)
    path = tmp_path / "model.rt"
    Roundtrip(**SMALL).fit(rng.normal(size=(60, 2))).save(path)
    original = path.read_bytes()
    length = struct.unpack("<Q", original[:8])[0]
    header, rest = original[8 : 8 + length], original[8 + length :]
    for _ in until(SECONDS):
        changed = mutated(header, rng)
        path.write_bytes(struct.pack("<Q", len(changed)) + changed + rest)
        _, refusal = attempt(lambda: load(path), ModelFileError)
        assert refusal is None or str(path) in str(refusal)
