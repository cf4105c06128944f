"""Questions about parts of rows from the command line."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from command_line import run, succeed
from conftest import TINY

from roundtrip import Roundtrip, RoundtripImputer, load
from roundtrip.data.tables import read_table
from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder

pytestmark = pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=40))


def people(rows, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 70, rows).astype(float)
    return pd.DataFrame(
        {
            "age": age,
            "balance": 10 * age + rng.normal(size=rows),
            "job": np.where(age < 30, "student", rng.choice(["clerk", "smith"], rows)),
            "shirt": pd.Categorical(rng.choice(["S", "M", "L"], rows), ["S", "M", "L"], True),
            "zip": rng.choice([1234, 8001], rows),
            "hired": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(99, size=rows), "D"),
            "member": rng.random(rows) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of people, of numbers without names, of images, and with a context; tables."""
    folder = tmp_path_factory.mktemp("questions")
    frame = people(200, seed=0)
    frame.loc[::3, "balance"] = None
    frame.loc[1::3, "job"] = None
    columns = {"zip": "category", "hired": "date", "shirt": ["S", "M", "L"]}
    density = Roundtrip(**TINY, columns=columns)
    density.fit(frame).save(folder / "m.rt")
    RoundtripImputer.from_density(density).save(folder / "imputer.rt")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    X[::3, 0] = np.nan
    Roundtrip(**TINY).fit(X).save(folder / "nameless.rt")
    np.save(folder / "gaps.npy", X[:6])
    Roundtrip(**TINY).fit(rng.random((20, 4, 4, 1))).save(folder / "i.rt")
    labels = frame["age"] > 40
    Roundtrip(**TINY).fit(rng.normal(size=(200, 2)), context=labels).save(folder / "context.rt")
    some = frame.head(6)
    some.assign(note=["007", None, "x"] * 2).to_csv(folder / "gaps.csv", index=False)
    some.to_csv(folder / "numbered.csv")
    some.drop(columns="balance").to_csv(folder / "lacking.csv", index=False)
    some.to_parquet(folder / "gaps.parquet")
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def test_impute_fills_missing_cells_and_keeps_all_others(tmp_path):
    result = succeed("impute", "m.rt", "gaps.csv", "-o", tmp_path / "filled.csv")
    assert "4 cells filled" in result.stderr
    text = {"zip", "note", "hired"}
    before, after = (read_table(path, text=text) for path in ("gaps.csv", tmp_path / "filled.csv"))
    assert list(after.columns) == list(before.columns)
    known = before.notna().to_numpy()
    assert (before.astype(object) == after.astype(object)).to_numpy()[known].all()
    assert after.drop(columns="note").notna().all().all()
    assert after["note"].equals(before["note"])
    assert set(after["job"]) <= {"student", "clerk", "smith"}


def test_files_of_imputers_are_files_of_their_density():
    facts = json.loads(succeed("info", "imputer.rt", "--json").stdout)
    assert facts["holds"] == "imputer"
    assert facts["settings"]["how"] == "mean"
    assert "row(s) marked as outliers" in succeed("detect", "imputer.rt", "gaps.csv", "-q").stdout


def test_impute_agrees_with_python(tmp_path):
    succeed("impute", "imputer.rt", "gaps.parquet", "-o", tmp_path / "f.parquet", "--how", "median")
    expected = load("m.rt").impute(pd.read_parquet("gaps.parquet"), how="median")
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "f.parquet"), expected, check_dtype=False
    )


def test_several_draws_are_completed_tables_one_below_the_other(tmp_path):
    path = tmp_path / "filled.csv"
    succeed("impute", "m.rt", "gaps.csv", "-o", path, "--draws", 3, "--seed", 0, "-q")
    table = read_table(path)
    assert table.columns[0] == "draw"
    assert table["draw"].tolist() == [1.0] * 6 + [2.0] * 6 + [3.0] * 6
    assert table.groupby("draw")["balance"].nunique().eq(6).all()
    assert table["balance"].iloc[0] != table["balance"].iloc[6]  # missing
    assert table["balance"].iloc[1] == table["balance"].iloc[7]  # observed
    succeed("impute", "nameless.rt", "gaps.npy", "-o", tmp_path / "f.npy", "--draws", 2)
    drawn = np.load(tmp_path / "f.npy")
    assert drawn.shape == (12, 3)
    assert not np.isnan(drawn).any()


def test_predict_writes_the_distribution_of_a_number(tmp_path):
    path = tmp_path / "p.csv"
    options = ("--column", "balance", "--quantiles", ".05,.5,.95", "--errors")
    succeed("predict", "m.rt", "gaps.csv", *options, "-o", path)
    table = read_table(path)
    names = ["mean", "sd", "q0.05", "q0.5", "q0.95"]
    both = [each for name in names for each in (name, f"{name}_error")]
    assert list(table.columns) == [*both, "converged"]
    assert (table["q0.05"] < table["q0.95"]).all()
    law = load("m.rt").conditional(read_table("gaps.parquet"), "balance")
    np.testing.assert_allclose(table["mean"], law.mean())
    np.testing.assert_allclose(table["q0.5_error"], law.quantile(0.5, with_error=True)[1])


def test_predict_writes_probabilities_of_levels():
    table = succeed("predict", "m.rt", "gaps.csv", "--column", "job").stdout.splitlines()
    header = table[0].split(",")
    assert header[0] == "mode"
    assert set(header[1:-1]) == {"p_student", "p_clerk", "p_smith"}
    assert header[-1] == "converged"
    assert len(table) == 7
    ordered = succeed("predict", "m.rt", "gaps.csv", "--column", "shirt", "--quantiles", ".5")
    assert ordered.stdout.startswith("mode,q0.5,p_S,p_M,p_L,converged")
    dates = succeed("predict", "m.rt", "gaps.csv", "--column", "hired", "--quantiles", ".5")
    assert dates.stdout.splitlines()[1].split(",")[2].startswith("2020-")


@pytest.mark.filterwarnings("always")
def test_predict_needs_not_the_column_itself_and_integrates_lacking_ones_out():
    without = succeed("predict", "m.rt", "lacking.csv", "--column", "balance", "-q")
    assert without.stderr == ""
    assert without.stdout == succeed("predict", "m.rt", "gaps.csv", "--column", "balance").stdout
    lacking = succeed("predict", "m.rt", "lacking.csv", "--column", "age", "-q")
    assert "warning: lacking.csv lacks balance, which are integrated out" in lacking.stderr


def test_parts_of_rows_are_scored_as_in_python():
    est, rows = load("m.rt"), read_table("gaps.parquet")
    part = succeed("score", "m.rt", "gaps.csv", "--columns", "age, hired", "--tol", 1, "-q")
    expected = est.density(rows[["age", "hired"]], tol=1).log_density
    found = [float(line.split(",")[0]) for line in part.stdout.splitlines()[1:]]
    np.testing.assert_allclose(found, expected)
    given = succeed("score", "m.rt", "gaps.csv", "--given", "age", "--tol", 1, "-q")
    expected = est.density(rows, given=["age"], tol=1).log_density
    found = [float(line.split(",")[0]) for line in given.stdout.splitlines()[1:]]
    np.testing.assert_allclose(found, expected)
    both = ("--columns", "hired", "--given", "age")
    both = succeed("score", "m.rt", "gaps.csv", *both, "--tol", 1, "-q").stdout
    expected = est.density(rows[["hired", "age"]], given=["age"], tol=1).log_density
    found = [float(line.split(",")[0]) for line in both.splitlines()[1:]]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        (["job=student"], lambda t: t["job"] == "student"),
        (["job=clerk,smith"], lambda t: t["job"].isin(["clerk", "smith"])),
        (["job=clerk", "job=smith"], lambda t: t["job"].isin(["clerk", "smith"])),
        (["age=18..25"], lambda t: t["age"].between(18, 25)),
        (["age=60.."], lambda t: t["age"] >= 60),
        (["age=..30", "job=student"], lambda t: (t["age"] <= 30) & (t["job"] == "student")),
        (["age=30"], lambda t: t["age"] == 30),
        (["balance=-5..300"], lambda t: t["balance"].between(-5, 300)),
        (["shirt=M.."], lambda t: t["shirt"].isin(["M", "L"])),
        (["zip=8001"], lambda t: t["zip"] == 8001),
        (["member=true"], lambda t: t["member"]),
        (["hired=2020-01-05..2020-02-01"], lambda t: t["hired"].str.startswith("2020-0")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_samples_keep_what_is_given(given, holds, tmp_path):
    path = tmp_path / "s.csv"
    options = [word for each in given for word in ("--given", each)]
    succeed("sample", "m.rt", "-n", 15, "--seed", 0, *options, "-o", path)
    table = read_table(path)
    assert len(table) == 15
    assert holds(table).all()


def test_columns_without_names_go_by_their_numbers():
    table = succeed("sample", "nameless.rt", "-n", 4, "--given", "1=0.25", "--seed", 0).stdout
    assert all(line.endswith(",0.25") for line in table.splitlines())
    assert succeed("predict", "nameless.rt", "gaps.npy", "--column", "0").stdout.count("\n") == 7


def test_probabilities_come_with_errors():
    result = succeed("probability", "m.rt", "age=..40", "--given", "job=clerk", "--tol", 0.1)
    header, values = result.stdout.splitlines()
    assert header.startswith("probability,std_error")
    expected = load("m.rt").probability({"age": (None, 40)}, given={"job": "clerk"}, tol=0.1)
    assert float(values.split(",")[0]) == pytest.approx(float(expected))


COLUMNS = "the columns of the model are age, balance, job, shirt, zip, hired, member"
SAMPLE, PREDICT = ("sample", "m.rt", "-n", 2, "--given"), ("predict", "m.rt", "gaps.csv")
BAD = {
    "unknown given": ((*SAMPLE, "price=3"), f"--given names 'price', but {COLUMNS}"),
    "no condition": ((*SAMPLE, "age"), "--given age: give a column and what is known of it"),
    "text for a number": ((*SAMPLE, "age=old"), "given['age'] = 'old' is no value"),
    "unknown level": ((*SAMPLE, "job=king"), "there is no level 'king', only "),
    "no date": ((*SAMPLE, "hired=soon"), "given['hired'] = 'soon' is no value"),
    "empty range": ((*SAMPLE, "age=30..20"), "the range from 30.0 to 20.0 is empty"),
    "range without ends": ((*SAMPLE, "age=.."), "must be a range (low, high)"),
    "three ends": ((*SAMPLE, "age=1..2..3"), "must be a range (low, high)"),
    "range of levels": ((*SAMPLE, "job=a..b"), "levels without an order have no range"),
    "a number twice": ((*SAMPLE, "age=20", "--given", "age=30"), "--given names age 2 times"),
    "given and context": (
        ("sample", "context.rt", "-n", 2, "--context", "True", "--given", "0=1"),
        "--context and --given exclude each other",
    ),
    "all given": (
        ("sample", "nameless.rt", "-n", 2, "--given", "0=1", "--given", "1=1"),
        "given= has a value for every column",
    ),
    "unknown part": (
        ("score", "m.rt", "gaps.csv", "--columns", "price"),
        f"'price', but {COLUMNS}",
    ),
    "unknown given part": (("score", "m.rt", "gaps.csv", "--given", "price"), f"but {COLUMNS}"),
    "all given parts": (
        ("score", "m.rt", "gaps.csv", "--columns", "age", "--given", "age"),
        "no observed cell beside those of the given columns",
    ),
    "nameless part": (
        ("score", "nameless.rt", "gaps.npy", "--columns", "0"),
        "--columns needs a model whose columns have names",
    ),
    "unknown target": ((*PREDICT, "--column", "price"), f"--column names 'price', but {COLUMNS}"),
    "two targets": ((*PREDICT, "--column", "age,job"), "--column is for one column"),
    "quantiles of levels": (
        (*PREDICT, "--column", "job", "--quantiles", ".5"),
        "quantile needs an order",
    ),
    "no number": (
        (*PREDICT, "--column", "age", "--quantiles", "half"),
        "--quantiles half: give probabilities",
    ),
    "no probability": ((*PREDICT, "--column", "age", "--quantiles", "5"), "q must be"),
    "imputing without a column": (("impute", "m.rt", "lacking.csv", "-o", "x.csv"), "it lacks bal"),
    "imputing row numbers": (("impute", "m.rt", "numbered.csv", "-o", "x.csv"), "has no name"),
    "event and given": (
        ("probability", "m.rt", "age=..40", "--given", "age=20"),
        "event and given both name 'age'",
    ),
    "an exact number": (("probability", "m.rt", "balance=3"), "has no probability; give a range"),
    "images, impute": (("impute", "i.rt", "gaps.csv", "-o", "x.csv"), "impute is for"),
    "images, predict": (("predict", "i.rt", "gaps.csv", "--column", "age"), "pixels of images"),
    "images, sample": (("sample", "i.rt", "-n", 1, "--given", "0=1", "-o", "x.npy"), "pixels of"),
    "images, score": (("score", "i.rt", "gaps.csv", "--given", "age"), "pixels of images"),
    "images, probability": (("probability", "i.rt", "age=1"), "pixels of images"),
    "context, impute": (("impute", "context.rt", "gaps.npy", "-o", "x.npy"), "without a context"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD.keys())
def test_bad_questions_give_one_line(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert [line for line in result.stderr.splitlines() if "error" in line] == [
        result.stderr.splitlines()[-1]
    ]


def test_fit_may_train_the_encoder_of_parts(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(Roundtrip, "fit", lambda self, *_, **__: asked.append(self.part_encoder))
    for option in ("--part-encoder", "--no-part-encoder"):
        run("fit", "gaps.csv", "-o", tmp_path / "m.rt", option, "-q")
    run("fit", "gaps.csv", "-o", tmp_path / "m.rt", "-q")
    assert asked == [True, False, "auto"]
