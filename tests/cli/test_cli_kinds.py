"""Tables with text, codes, dates and missing cells from the command line."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import run, succeed

from roundtrip import Roundtrip, load
from roundtrip.data.tables import read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People with a job, a code, a flag and a birthday, as csv and parquet, and a model."""
    folder = tmp_path_factory.mktemp("kinds")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=200),
            "job": rng.choice(["smith", "baker"], 200),
            "zip": rng.choice(["01234", "99999"], 200),
            "member": rng.random(200) < 0.5,
            "birthday": pd.Timestamp("1990-01-01")
            + pd.to_timedelta(rng.integers(5000, size=200), "D"),
        }
    )
    frame.to_csv(folder / "people.csv", index=False)
    frame.to_parquet(folder / "people.parquet")
    kinds = ("--categories", "zip", "--dates", "birthday")
    people = folder / "people.csv"
    fit = ("fit", people, "-o", folder / "m.rt", "--max-epochs", 1, "--seed", 0, "-q")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        succeed(*fit, *kinds)
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def fitted(monkeypatch):
    """The estimators whose fit was called, and the tables; none is really fitted."""
    calls = []

    def record(self, X, y=None, **settings):
        calls.append((self, X))
        raise ValueError("recorded")

    monkeypatch.setattr(Roundtrip, "fit", record)
    return calls


def test_options_say_what_columns_are(here, fitted):
    run("fit", "people.csv", "-o", "x.rt", "--categories", "job, zip", "--dates", "birthday")
    run("fit", "people.parquet", "-o", "x.rt", "--missing", "model")
    (first, text), (second, typed) = fitted
    assert first.columns == {"job": "category", "zip": "category", "birthday": "date"}
    assert (first.missing, second.missing, second.columns) == ("ignore", "model", None)
    assert text["zip"][0] in ("01234", "99999")
    assert text["member"].dtype == bool
    assert text["birthday"].dtype == text["job"].dtype
    pd.testing.assert_frame_equal(typed, pd.read_parquet("people.parquet"))


def test_a_text_that_looks_like_a_date_is_text_unless_named(here):
    result = run("fit", "people.csv", "-o", "x.rt")
    assert result.exit_code == 2
    assert "column 'birthday': it has" in result.stderr


def test_info_shows_the_kinds(here):
    kinds = json.loads(succeed("info", "m.rt", "--json").stdout)["kinds"]
    assert kinds == {
        "size": "number",
        "job": kinds["job"],
        "zip": kinds["zip"],
        "member": "category of 2 levels: False, True",
        "birthday": "date, in steps of 1 day",
    }
    assert kinds["job"].startswith("category of 2 levels: '")
    assert "date, in steps of 1 day" in succeed("info", "m.rt").stdout


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_samples_are_like_the_table(here, tmp_path, suffix):
    path = tmp_path / f"new{suffix}"
    succeed("sample", "m.rt", "-n", 20, "--seed", 0, "-o", path)
    table = read_table(path, text=["zip"])
    assert list(table.columns) == ["size", "job", "zip", "member", "birthday"]
    assert set(table["zip"]) <= {"01234", "99999"}
    assert set(table["job"]) <= {"smith", "baker"}
    days = pd.to_datetime(table["birthday"])
    assert (days == days.dt.normalize()).all()


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_scores_read_the_table_as_fit_did(here, tmp_path, name):
    succeed("score", "m.rt", name, "-o", tmp_path / "s.csv", "-q", "--tol", 1)
    scores = read_table(tmp_path / "s.csv")["log_density"]
    expected = load("m.rt").density(read_table(name, text=["zip", "birthday"]), tol=1)
    np.testing.assert_allclose(scores, expected.log_density)


def test_settings_of_kinds_survive_a_file(here):
    assert load("m.rt").columns == {"zip": "category", "birthday": "date"}
    assert load("m.rt").missing == "ignore"


@pytest.mark.parametrize("option", ["--columns", "--categories", "--dates"])
def test_options_with_names_are_called_by_theirs_if_a_table_has_no_names(here, option):
    np.save("unnamed.npy", np.zeros((5, 2)))
    result = run("fit", "unnamed.npy", "-o", "x.rt", option, "job")
    assert result.exit_code == 2
    assert f"{option} needs column names, but unnamed.npy has none" in result.stderr
