"""A full disk costs neither a fitted model nor the training that goes on."""

import os
from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest
from command_line import run
from conftest import TINY
from full_disk import no_large_files, small_disk

from roundtrip import Roundtrip, load
from roundtrip.cli.rescue import saved
from roundtrip.data.tables import read_table, write_table
from roundtrip.io.atomic import LEFTOVER_SECONDS, _create_beside

X = np.random.default_rng(0).normal(size=(60, 2))
BRIEF = ("--max-epochs", 1, "--seed", 0, "--quiet")


@pytest.fixture
def data(tmp_path):
    write_table(X, tmp_path / "d.csv")
    return tmp_path / "d.csv"


@pytest.fixture
def disk(tmp_path):
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def test_saving_names_the_file_and_keeps_the_old_one(tmp_path, fitted):
    path = tmp_path / "m.rt"
    path.write_text("old")
    with no_large_files(), pytest.raises(OSError, match=rf"can't write.*{path}"):
        fitted.save(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["m.rt"]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".npy"])
def test_tables_on_a_full_disk(tmp_path, suffix):
    path, table = tmp_path / f"t{suffix}", np.random.default_rng(0).normal(size=(3000, 3))
    with no_large_files(), pytest.raises(OSError, match=rf"can't write.*{path}"):
        write_table(table, path)
    assert os.listdir(tmp_path) == []


def test_fit_saves_the_model_elsewhere(tmp_path, data, disk, monkeypatch):
    (tmp_path / "spare").mkdir()
    (tmp_path / "spare" / "m.rt").write_text("in use")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spare"))
    result = run("fit", data, "-o", disk / "m.rt", *BRIEF)
    assert result.exit_code == 0
    place = tmp_path / "spare" / "m-2.rt"
    assert "can't write: " in result.stderr
    assert f"{disk / 'm.rt'}" in result.stderr
    assert f"the model is in {place} instead" in " ".join(result.stderr.split())
    assert load(place).score_samples(X[:2]).shape == (2,)
    assert (tmp_path / "spare" / "m.rt").read_text() == "in use"
    assert os.listdir(disk) == []


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No other folder takes a file."""
    place = tmp_path / "nowhere" / "m.rt"
    monkeypatch.setattr("roundtrip.cli.rescue._other_places", lambda output: [place])


def test_fit_says_that_the_model_is_lost(data, nowhere):
    with no_large_files():
        result = run("fit", data, "-o", data.parent / "m.rt", *BRIEF)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: can't write")
    assert "no other folder takes the model either" in result.stderr
    assert result.stderr.count("\n") == 1


def test_fit_waits_for_room_if_the_user_is_there(data, nowhere, monkeypatch):
    path, asked = data.parent / "m.rt", []
    est = Roundtrip(**TINY).fit(X)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with ExitStack() as full:
        full.enter_context(no_large_files())

        def make_room(text, **_):
            asked.append(text)
            full.close()

        monkeypatch.setattr("typer.prompt", make_room)
        assert saved(est, path) == path
    assert len(asked) == 1
    assert str(path) in asked[0]
    assert load(path).score_samples(X[:2]).shape == (2,)


def test_training_goes_on_without_checkpoints(tmp_path):
    path = tmp_path / "c"
    with no_large_files(), pytest.warns(UserWarning, match=f"goes on without it.*{path}") as caught:
        est = Roundtrip(**TINY).fit(X, checkpoint=path)
    assert len(caught) == 1
    assert not path.exists()
    np.testing.assert_array_equal(
        est.score_samples(X[:3]), Roundtrip(**TINY).fit(X).score_samples(X[:3])
    )


def test_files_of_killed_writers_are_removed_by_the_next_one(tmp_path):
    frame = pd.DataFrame({"a": [1.0]})
    write_table(frame, tmp_path / "t.csv")
    old, young, other = (
        _create_beside(tmp_path / name)[0] for name in ("t.csv", "t.csv", "other.csv")
    )
    for file in (old, other):
        past = file.stat().st_mtime - LEFTOVER_SECONDS - 1
        os.utime(file, (past, past))
    write_table(frame, tmp_path / "t.csv")
    assert not old.exists()  # its writer is long gone
    assert young.exists()  # whose writer may be at work
    assert other.exists()  # of another file
    assert len(read_table(tmp_path / "t.csv")) == 1
