import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import run, succeed

import roundtrip
from roundtrip import Likelihood, Proposal, Roundtrip, Validation, load
from roundtrip.data.tables import read_table, write_table
from roundtrip.io.saved import plain_parameters
from roundtrip.outliers.default_density import default_density


def brief(features):
    """A density for the detector that is hardly trained."""
    return default_density(features).set_params(max_epochs=1, objective__min_steps_per_epoch=30)


def csv(text):
    return pd.read_csv(io.StringIO(text))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data and two models: m.rt knows its columns a and b, nameless.rt doesn't."""
    folder = tmp_path_factory.mktemp("cli")
    z = np.random.default_rng(0).normal(size=(200, 1))
    X = np.hstack([z, 2 * z + 5]) + 0.1 * np.random.default_rng(1).normal(size=(200, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    write_table(frame, folder / "d.csv")
    write_table(frame[:5], folder / "few.csv")
    write_table(X[:5], folder / "few.npy")
    small = Roundtrip(
        objective="adversarial",
        max_epochs=1,
        validation=Validation(draws=20),
        proposal=Proposal(draws=50),
        random_state=0,
    )
    small.fit(frame).save(folder / "m.rt")
    small.fit(X).save(folder / "nameless.rt")
    (folder / "empty.csv").touch()
    (folder / "folder.csv").mkdir()
    (folder / "folder.rt").mkdir()
    (folder / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (folder / "text.csv").write_text("a,b,name\n1,2,Ada\n3,4,Bob\n")
    (folder / "words.csv").write_text("a,b\n1,x\n3,y\n")
    (folder / "names.csv").write_text("a,name\n" + "".join(f"{i},N{i}\n" for i in range(30)))
    (folder / "gap.csv").write_text("a,b\n1,\n3,\n")
    (folder / "infinite.csv").write_text("a,b\n1,2\n3,-inf\n")
    (folder / "three.csv").write_text("1,2,3\n4,5,6\n")
    (folder / "one.csv").write_text("a\n1\n2\n")
    (folder / "bad.parquet").write_text("not parquet")
    (folder / "bad.npy").write_text("not npy")
    (folder / "bad.npz").write_text("not npz")
    (folder / "foreign.rt").write_text("not a model")
    (folder / "empty.rt").touch()
    whole = (folder / "m.rt").read_bytes()
    (folder / "half.rt").write_bytes(whole[: len(whole) // 2])
    damaged = bytearray(whole)
    damaged[-100] ^= 1
    (folder / "damaged.rt").write_bytes(damaged)
    np.savez(folder / "two.npz", a=X, b=X)
    np.save(folder / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    """The folder as the current one."""
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def fitted(monkeypatch):
    """The estimators whose fit was called; none of them is really fitted."""
    estimators = []

    def record(self, X, y=None, **settings):
        estimators.append((self, X))
        raise ValueError("recorded")

    monkeypatch.setattr(Roundtrip, "fit", record)
    return estimators


def start(*arguments, folder):
    command = [sys.executable, "-m", "roundtrip", *map(str, arguments)]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # more threads only slow tiny networks down
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_fit_score_sample_info_end_to_end(folder, tmp_path):
    data = folder / "d.csv"
    fit = start("fit", data, "-o", "m.rt", "--max-epochs", 2, "--seed", 3, folder=tmp_path)
    output, progress = fit.communicate()
    assert fit.returncode == 0, progress
    assert "log-lik" in progress
    summary = {line[:27].strip(): line[27:] for line in output.splitlines()}
    assert (summary["rows"], summary["columns"], summary["epochs"]) == ("200", "2", "2")
    assert (summary["column names"], summary["model"]) == ("a, b", "m.rt")
    assert {"best epoch", "validation log likelihood"} <= summary.keys()

    score = start("score", "m.rt", folder / "few.csv", "-o", "s.csv", "--tol", 0.5, folder=tmp_path)
    sample = start("sample", "m.rt", "-n", 20_000, folder=tmp_path)
    info = start("info", "m.rt", "--json", folder=tmp_path)

    output, summary = score.communicate()
    assert (score.returncode, output) == (0, "")
    assert "mean log density" in summary
    assert len(read_table(tmp_path / "s.csv")) == 5

    assert sample.stdout.readline() == "a,b\n"
    sample.stdout.close()  # as `| head -1` does
    assert sample.stderr.read() == ""
    sample.stderr.close()
    sample.wait(timeout=30)

    assert json.loads(info.communicate()[0])["epochs"] == 2
    assert sorted(os.listdir(tmp_path)) == ["m.rt", "s.csv"]


def test_fit_saves_what_the_library_fits(here, tmp_path):
    arguments = ("--max-epochs", 1, "--seed", 5, "--batch-size", 100)
    result = succeed("fit", "d.csv", "-o", tmp_path / "m.rt", "--quiet", *arguments)
    assert result.output == ""
    expected = Roundtrip(objective=Likelihood(batch_size=100), max_epochs=1, random_state=5)
    expected.fit(read_table("d.csv"))
    points = read_table("few.csv")
    fitted = load(tmp_path / "m.rt")
    assert fitted.score_samples(points).tolist() == expected.score_samples(points).tolist()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), {"latent_dim": "auto", "scale": "standard", "verbose": 1, "random_state": None}),
        (("--quiet",), {"verbose": 0}),
        (("--latent-dim", 3), {"latent_dim": 3}),
        (("--scale", "minmax"), {"scale": "minmax"}),
        (("--scale", "none"), {"scale": None}),
        (("--max-epochs", 7, "--batch-size", 11), {"max_epochs": 7, "objective__batch_size": 11}),
        (("--learning-rate", 0.5), {"objective__learning_rate": 0.5}),
        (("--device", "cpu"), {"device": "cpu"}),
        (("--seed", 0), {"random_state": 0}),
    ],
)
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_fit_options_change_what_they_name_and_nothing_else(
    here, fitted, preset, arguments, expected
):
    run("fit", "d.csv", "-o", "new.rt", "--preset", preset, *arguments)
    reference = Roundtrip.paper() if preset == "paper" else Roundtrip()
    if preset == "paper" and not arguments:
        expected = {**expected, "scale": "minmax"}
    reference.set_params(**{"verbose": 1, **expected})
    assert fitted[0][0].get_params() == reference.get_params()


def test_fit_goes_on_from_a_checkpoint(here, tmp_path):
    arguments = ("fit", "d.csv", "--max-epochs", 1, "--seed", 5, "--checkpoint", tmp_path / "c")
    succeed(*arguments, "-o", tmp_path / "m.rt")
    first = (tmp_path / "c").read_bytes()
    succeed(*arguments, "-o", tmp_path / "again.rt")
    assert (tmp_path / "c").read_bytes() == first
    points = read_table("few.csv")
    scores = [load(tmp_path / name).score_samples(points).tolist() for name in ("m.rt", "again.rt")]
    assert scores[0] == scores[1]
    result = run(*arguments, "-o", tmp_path / "other.rt", "--batch-size", 50)
    assert result.exit_code != 0
    assert "other data or settings" in result.output
    assert not (tmp_path / "other.rt").exists()


def test_fit_uses_the_chosen_columns(here, fitted):
    run("fit", "text.csv", "-o", "new.rt", "--columns", "b, a")
    pd.testing.assert_frame_equal(
        fitted[0][1], pd.DataFrame({"b": [2, 4], "a": [1, 3]}), check_column_type=False
    )


@pytest.mark.parametrize("method", ["adaptive", "importance", "laplace"])
@pytest.mark.parametrize("suffix", [None, ".csv", ".parquet", ".npy"])
def test_scores_are_those_of_the_library(here, tmp_path, method, suffix):
    draws = 30 if method == "importance" else None
    arguments = ["score", "m.rt", "few.csv", "--method", method]
    arguments += ["--n-samples", draws] if draws else []
    expected = load("m.rt").density(read_table("few.csv"), method=method, n_samples=draws)
    if suffix is None:
        scores = csv(succeed(*arguments).stdout)
    else:
        path = tmp_path / f"s{suffix}"
        result = succeed(*arguments, "-o", path)
        assert result.stdout == ""
        assert result.stderr.endswith(expected.summary() + "\n")
        assert succeed(*arguments, "-o", path, "--quiet").output == ""
        scores = read_table(path)
    frame = expected.to_frame()
    if suffix != ".npy":
        assert list(scores.columns) == list(frame.columns)
    np.testing.assert_array_equal(np.asarray(scores, dtype=float), np.asarray(frame, dtype=float))


def test_sigma_is_used(here):
    scores = csv(succeed("score", "m.rt", "few.csv", "--sigma", 0.3).stdout)
    expected = load("m.rt").density(read_table("few.csv"), sigma=0.3)
    assert scores["log_density"].tolist() == expected.log_density.tolist()


def test_columns_are_matched_by_name(here, tmp_path):
    frame = read_table("few.csv")
    shuffled = pd.DataFrame({"id": list("vwxyz"), "b": frame["b"], "a": frame["a"]})
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    assert (
        succeed("score", "m.rt", tmp_path / "shuffled.csv").stdout
        == succeed("score", "m.rt", "few.csv").stdout
    )


@pytest.mark.filterwarnings("default")
def test_a_table_without_names_is_taken_in_order_with_a_warning(here):
    result = succeed("score", "m.rt", "few.npy", "--quiet")
    assert result.stdout == succeed("score", "m.rt", "few.csv").stdout
    assert result.stderr.startswith("warning: few.npy has no column names")
    assert result.stderr.count("\n") == 1


def test_a_model_without_names_takes_any_names(here):
    result = succeed("score", "nameless.rt", "few.csv", "--quiet")
    assert result.stdout == succeed("score", "nameless.rt", "few.npy").stdout
    assert result.stderr == ""


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet", ".npy"])
@pytest.mark.parametrize("model", ["m.rt", "nameless.rt"])
def test_samples_are_those_of_the_library(here, tmp_path, model, suffix):
    path = tmp_path / f"new{suffix}"
    assert succeed("sample", model, "-n", 4, "--seed", 1, "-o", path).output == ""
    expected = load(model).sample(4, random_state=1)
    table = read_table(path)
    np.testing.assert_array_equal(np.asarray(table), np.asarray(expected))
    if model == "m.rt" and suffix != ".npy":
        assert list(table.columns) == ["a", "b"]


def test_samples_are_rounded_unless_spread(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"count": rng.poisson(3, size=100), "exact": rng.normal(size=100)})
    frame.to_csv("d.csv", index=False)
    result = succeed("fit", "d.csv", "-o", "m.rt", "--max-epochs", 1)
    assert "count: all" in result.output
    table = csv(succeed("sample", "m.rt", "-n", 50, "--seed", 0).output)
    spread = csv(succeed("sample", "m.rt", "-n", 50, "--seed", 0, "--spread").output)
    assert table["count"].isin(range(frame["count"].max() + 1)).all()
    assert (spread["count"] % 1 != 0).all()
    # Rows with a count outside of the range of fit are drawn again.
    kept = spread["count"].between(-0.5, frame["count"].max() + 0.5)
    assert kept.mean() > 0.5
    np.testing.assert_allclose(table["exact"][kept], spread["exact"][kept])
    known = json.loads(succeed("info", "m.rt", "--json").output)["rounded_columns"]
    assert list(known) == ["count"]
    assert known["count"].endswith("distinct values are multiples of 1")


def test_samples_differ_without_a_seed(here):
    first, second = (succeed("sample", "m.rt", "-n", 3).stdout for _ in range(2))
    assert first != second
    assert csv(first).shape == (3, 2)


def test_info(here):
    estimator = load("m.rt")
    expected = {
        "file": "m.rt",
        "columns": 2,
        "column_names": ["a", "b"],
        "kinds": {"a": "number", "b": "number"},
        "latent_dim": 2,
        "sigma": estimator.sigma_,
        "epochs": 1,
        "best_epoch": 1,
        "stopped_by": "max_epochs",
        "validation_log_likelihood": estimator.history_["validation_log_likelihood"][0],
        "parameters": sum(p.numel() for p in estimator.model_.parameters()),
    }
    content = json.loads(succeed("info", "m.rt", "--json").stdout)
    settings = content.pop("settings")
    assert content == expected
    params = estimator.get_params(deep=False)
    assert settings == json.loads(json.dumps(plain_parameters(params)))
    assert settings["validation"]["settings"]["draws"] == 20
    text = succeed("info", "m.rt").stdout
    for shown in ("a, b", "latent dim", f"{estimator.sigma_:.5g}", str(expected["parameters"])):
        assert shown in text
    assert all(name.replace("_", " ") in text for name in settings)
    assert json.loads(succeed("info", "nameless.rt", "--json").stdout)["column_names"] is None


@pytest.mark.parametrize("command", [(), ("fit",), ("score",), ("sample",), ("info",)])
def test_help_has_an_example(command):
    text = succeed(*command, "--help").stdout
    assert f"Example:\n    roundtrip {' '.join(command)}" in text


def test_version():
    assert succeed("--version").stdout == f"roundtrip {roundtrip.__version__}\n"


BAD_INPUTS = {
    "fit missing file": ("fit none.csv -o x.rt", "no such file: none.csv"),
    "fit folder": ("fit folder.csv -o x.rt", "folder.csv is a folder"),
    "fit empty": ("fit empty.csv -o x.rt", "empty.csv is empty"),
    "fit ragged": ("fit ragged.csv -o x.rt", "Row #3: Expected 2 columns, got 1"),
    "fit names": ("fit names.csv -o x.rt", "column 'name': it has 30 different .* in 30 rows"),
    "fit nothing": ("fit gap.csv -o x.rt", "column 'b': all its cells are missing"),
    "fit infinite": ("fit infinite.csv -o x.rt", "infinity.*in columns b; first in row 1: -inf"),
    "fit no dates": ("fit text.csv -o x.rt --dates name", "row 0 has 'Ada', which is not a date"),
    "fit absent category": ("fit text.csv -o x.rt --categories c", "names c, which is no column"),
    "fit two kinds": ("fit text.csv -o x.rt --categories a --dates a", "both name a"),
    "fit --outliers": ("fit d.csv -o x.rt --outliers --missing model", "leave out --missing"),
    "fit outliers text": ("fit names.csv -o x.rt --outliers", "column 'name': it has 2. different"),
    "fit unknown format": ("fit m.rt -o x.rt", "unknown format: supported are .csv"),
    "fit bad parquet": ("fit bad.parquet -o x.rt", "can't read bad.parquet"),
    "fit bad npy": ("fit bad.npy -o x.rt", "can't read bad.npy"),
    "fit bad npz": ("fit bad.npz -o x.rt", "can't read bad.npz"),
    "fit two arrays": ("fit two.npz -o x.rt", "holds a, b"),
    "fit objects": ("fit objects.npy -o x.rt", "allow_pickle=False"),
    "fit absent column": ("fit d.csv -o x.rt --columns a,c", "lacks c; its columns are a, b"),
    "fit no column": ("fit d.csv -o x.rt --columns ,", "lacks"),
    "fit nameless columns": ("fit three.csv -o x.rt --columns a", "three.csv has none"),
    "fit latent dim 0": ("fit d.csv -o x.rt --latent-dim 0", "--latent-dim"),
    "fit latent dim text": ("fit d.csv -o x.rt --latent-dim x", "--latent-dim"),
    "fit epochs": ("fit d.csv -o x.rt --max-epochs 0", "--max-epochs"),
    "fit batch size": ("fit d.csv -o x.rt --batch-size 1.5", "--batch-size"),
    "fit learning rate": ("fit d.csv -o x.rt --learning-rate -1", "learning_rate must be"),
    "fit learning rate 0": ("fit d.csv -o x.rt --learning-rate 0", "learning_rate must be"),
    "fit learning rate nan": ("fit d.csv -o x.rt --learning-rate nan", "learning_rate must be"),
    "fit seed": ("fit d.csv -o x.rt --seed -1", "--seed"),
    "fit seed too large": ("fit d.csv -o x.rt --seed 4294967296", "--seed"),
    "fit preset": ("fit d.csv -o x.rt --preset fast", "'fast' is not one of 'default', 'paper'"),
    "fit scale": ("fit d.csv -o x.rt --scale log", "'log' is not one of 'standard'"),
    "fit option": ("fit d.csv -o x.rt --magic 1", "--magic"),
    "fit no output": ("fit d.csv", "--output"),
    "fit no data": ("fit", "Missing argument 'DATA'"),
    "score missing model": ("score none.rt d.csv", "none.rt"),
    "score folder": ("score folder.rt d.csv", "folder.rt"),
    "score empty model": ("score empty.rt d.csv", "empty.rt is damaged or is not"),
    "score foreign model": ("score foreign.rt d.csv", "foreign.rt is damaged or is not"),
    "score half a model": ("score half.rt d.csv", "half.rt is damaged"),
    "score damaged model": ("score damaged.rt d.csv", "damaged.rt is damaged"),
    "score table as model": ("score d.csv d.csv", "d.csv is damaged or is not"),
    "score missing file": ("score m.rt none.csv", "no such file: none.csv"),
    "score absent column": ("score m.rt one.csv", "lacks b; its columns are a"),
    "score columns": ("score m.rt three.csv", "three.csv has 3 columns, the model needs 2"),
    "score nameless columns": ("score nameless.rt three.csv", "3 features.* 2 features"),
    "score columns of text": ("score nameless.rt text.csv", "3 features.* 2 features"),
    "score text": ("score m.rt words.csv", "column 'b': fit had numbers, but row 0 has 'x'"),
    "score method": ("score m.rt d.csv --method magic", "'magic' is not one of 'adaptive'"),
    "score samples": ("score m.rt d.csv --n-samples 0", "--n-samples"),
    "score sigma 0": ("score m.rt d.csv --sigma 0", "sigma must be a number above 1e-07"),
    "score sigma nan": ("score m.rt d.csv --sigma nan", "sigma must be a number above 1e-07"),
    "score over the data": ("score m.rt d.csv -o ./d.csv", "is the input"),
    "score output format": ("score m.rt d.csv -o x.npz", "unknown format"),
    "score output folder": ("score m.rt d.csv -o none/x.csv", "the folder none doesn't exist"),
    "score output is folder": ("score m.rt d.csv -o folder.csv", "folder.csv: it is a folder"),
    "sample no number": ("sample m.rt", "-n"),
    "sample zero": ("sample m.rt -n 0", "-n"),
    "sample negative": ("sample m.rt -n -5", "-n"),
    "sample text": ("sample m.rt -n many", "-n"),
    "sample missing model": ("sample none.rt -n 1", "none.rt"),
    "sample output format": ("sample m.rt -n 1 -o x.xlsx", "unknown format"),
    "sample output folder": ("sample m.rt -n 1 -o d.csv/x.csv", "d.csv isn't a folder"),
    "info missing": ("info none.rt", "none.rt"),
    "info folder": ("info folder.rt", "folder.rt"),
    "info foreign": ("info foreign.rt --json", "not a Roundtrip model file"),
    "no command": ("", "Missing command"),
    "unknown command": ("fitt d.csv", "No such command 'fitt'"),
}


def check_refused(result, message):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 300
    assert re.search(message, result.stderr)


@pytest.mark.parametrize(("line", "message"), BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
def test_bad_input_is_one_line_and_exit_code_2(here, line, message):
    before = sorted(os.listdir())
    check_refused(run(*line.split()), message)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("none/m.rt", "the folder none doesn't exist"),
        ("d.csv/m.rt", "d.csv isn't a folder"),
        ("folder.rt", "folder.rt: it is a folder"),
        ("model.csv", "ends in .rt"),
        ("model", "ends in .rt"),
    ],
)
def test_a_bad_model_path_is_refused_before_the_fit(here, fitted, output, message):
    check_refused(run("fit", "d.csv", "-o", output), message)
    assert fitted == []


@pytest.mark.parametrize("device", ["nonsense", "cuda:99"])
def test_a_bad_device_is_refused(here, device):
    check_refused(run("fit", "d.csv", "-o", "x.rt", "--device", device), device)


def test_help_does_not_import_torch():
    code = "import sys, roundtrip.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        "fit none.csv -o x.rt",
        "fit . -o x.rt",
        "fit {table} -o no/such/folder/x.rt",
        "fit {table} -o x.foo",
        "score none.rt {table}",
        "score {table} none.csv",
        "score {table} {table} -o x.foo",
        "detect none.rt {table}",
        "sample none.rt -n 3",
        "info none.rt",
        "generate none.rt -o x.png",
    ],
)
def test_errors_about_files_do_not_wait_for_torch(command, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    code = (
        "import sys, roundtrip.cli\n"
        "try: roundtrip.cli.main()\n"
        "except SystemExit as end: sys.exit(99 if 'torch' in sys.modules else end.code)"
    )
    words = command.format(table=table).split()
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_module_is_the_command_line_and_names_its_parts():
    done = subprocess.run(
        [sys.executable, "-m", "roundtrip", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"roundtrip {roundtrip.__version__}\n")
    assert {"Roundtrip", "load", "RoundtripModel"} <= set(dir(roundtrip))


def test_detect_shows_the_oddest_rows_and_writes_all(here, tmp_path):
    fit = succeed("fit", "d.csv", "--outliers", "-o", tmp_path / "odd.rt", "--seed", 0, "-q")
    assert fit.stdout == ""
    frame = read_table("few.csv")
    frame.loc[2, "b"] = 99.0
    write_table(frame, tmp_path / "new.csv")
    shown = succeed(
        "detect",
        tmp_path / "odd.rt",
        tmp_path / "new.csv",
        "--top",
        2,
        "-o",
        tmp_path / "s.csv",
        "-q",
    ).stdout
    first = next(line for line in shown.splitlines() if line.split()[:1] == ["2"])
    assert "b (" in first
    assert "marked as outliers" in shown
    scores = read_table(tmp_path / "s.csv")
    assert list(scores.columns) == ["row", "score", "p_value", "outlier"]
    assert scores["score"].idxmin() == 2
    detector = load(tmp_path / "odd.rt")
    np.testing.assert_allclose(scores["score"], detector.score_samples(frame))
    np.testing.assert_allclose(scores["p_value"], detector.p_value(frame))
    facts = json.loads(succeed("info", tmp_path / "odd.rt", "--json").stdout)
    assert facts["holds"] == "outlier detector"
    assert facts["column_names"] == list(frame.columns)
    assert facts["threshold_of_predict"] == detector.offset_
    assert facts["held_out_rows"] == len(detector.held_out_scores_)
    assert facts["settings"]["contamination"] == "auto"
    assert "outlier detector" in succeed("info", tmp_path / "odd.rt").stdout
    # So few rows were held out that nothing can be marked, which is told.
    told = succeed("detect", tmp_path / "odd.rt", tmp_path / "new.csv", "--rate", 0.001)
    assert "0 row(s) marked" in told.stdout
    assert "too large for single rows" in told.stderr


def test_detect_explains_in_sentences_and_marks_a_share(here, tmp_path):
    succeed("fit", "d.csv", "--outliers", "-o", tmp_path / "odd.rt", "--seed", 0, "-q")
    frame = read_table("few.csv")
    frame.loc[2, "b"] = 99.0
    write_table(frame, tmp_path / "new.csv")
    arguments = ("detect", tmp_path / "odd.rt", tmp_path / "new.csv", "-q")
    shown = succeed(*arguments, "--top", 1, "--explain", 1, "--contamination", 0.5).stdout
    assert "row 2: outside: b 99 where " in shown
    assert f"{round(0.5 * len(frame))} row(s) marked as outliers, a share of 0.5" in shown
    assert run(*arguments, "--contamination", 2).exit_code == 2


def test_detect_takes_a_density_and_outliers_have_settings_of_their_own(here, monkeypatch):
    monkeypatch.setattr("roundtrip.outliers.scorer.DRAWS", 100)
    shown = succeed("detect", "m.rt", "few.csv", "-q", "--top", 1)
    assert re.search(r"^ +\d ", shown.stdout, flags=re.MULTILINE)
    assert shown.stderr == ""
    assert run("detect", "m.rt", "few.csv", "--rate", 7).exit_code == 2
    refused = run(
        "fit", "d.csv", "-o", "x.rt", "--outliers", "--noise", "diagonal", "--max-time", 9
    )
    assert refused.exit_code == 2
    assert "leave out --noise, --max-time" in refused.stderr
