"""The README's code runs, and its figures are those of the benchmarks' files."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from documents import run_blocks
from typer.main import get_command

import roundtrip
import roundtrip.baselines
from roundtrip import Roundtrip, Validation, plots
from roundtrip.cli.app import app
from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder
from roundtrip.outliers import scorer

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
WORDS = " ".join(README.split())
EVERY_COMMAND = re.compile(r"`(?:\.venv/bin/)?roundtrip ([^`]+)`|^roundtrip (.+)$", re.MULTILINE)
FEW_ROWS = {"20_000": "200", ":500]": ":20]", "500, ": "20, "}


@pytest.fixture
def short_fits(monkeypatch, tmp_path):
    """Fits of two steps and densities to half a nat, in a folder that goes away."""
    quick = {
        "max_epochs": 1,
        "objective__min_steps_per_epoch": 2,
        "validation": Validation(rows=20, draws=10),
        "tol": 0.5,
        "verbose": 0,
    }
    fit = Roundtrip.fit
    monkeypatch.setattr(
        Roundtrip, "fit", lambda self, *a, **k: fit(self.set_params(**quick), *a, **k)
    )
    monkeypatch.setattr(scorer, "DRAWS", 50)
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=20))
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
@pytest.mark.usefixtures("short_fits")
@pytest.mark.filterwarnings("ignore:.* reference rows are too few:UserWarning")
def test_code_runs():
    names = run_blocks(ROOT / "README.md", **FEW_ROWS)
    X = names["X"] = names["X"][:60]
    names |= {name: getattr(roundtrip, name) for name in roundtrip.__all__}
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"age": rng.normal(30, 9, 80), "job": ["clerk", "smith"] * 40})
    df["zip"] = [1, 2, 3, 4] * 20
    df["balance"] = rng.normal(size=80)
    df.loc[::3, "balance"] = None
    names |= {
        "df": df,
        "model": roundtrip.Roundtrip(max_epochs=1, columns={"zip": "category"}).fit(df),
        "roundtrip": roundtrip,
        "plots": plots,
        "est": roundtrip.load("model.rt"),
        "MyNoise": roundtrip.Mixture,
        "y": X[:, 0] > 0,
        "z": np.zeros((2, 2)),
        "new": X[:5],
        "images": np.random.default_rng(0).random((40, 8, 8, 1)),
        "digits": np.arange(40) % 10,
    }
    table = README.split("| task | code |")[1].split("\n\n")[0]
    codes = [code for code in re.findall(r"`([^`]+)`", table) if re.match(r"[\w.]+\(", code)]
    assert len(codes) == 23
    for code in codes:
        code = code.replace("max_time=60", "max_time=1")
        if "paper" in code:
            code = code.replace(".fit(X)", "")  # its networks are too large for a quick test
        eval(code, names)


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
@pytest.mark.usefixtures("short_fits")
@pytest.mark.filterwarnings("ignore:.* reference rows are too few:UserWarning")
def test_guide_runs():
    run_blocks(ROOT / "docs" / "usage.md", **FEW_ROWS)


@pytest.mark.parametrize("page", ["README.md", "docs/usage.md"])
def test_commands_exist(page):
    commands = get_command(app).commands
    found = EVERY_COMMAND.findall((ROOT / page).read_text())
    assert len(found) > 3
    for line in (inline or block for inline, block in found):
        name, *words = line.split("#")[0].split()
        options = {option for each in commands[name].params for option in each.opts}
        assert {word for word in words if word.startswith("-")} <= options


def test_table_is_that_of_the_results():
    page = (ROOT / "results/table1/table1.md").read_text().splitlines()
    for method in ("method", "Gaussian mixture", "MAF", "NSF", "Roundtrip"):
        row = next(line for line in page if line.startswith(f"| {method} |"))
        ours = row.split(" | ")[:4]  # behind these come the paper's figures
        assert " | ".join(ours) + " |" in README


def test_mixed_tables_are_those_of_the_results():
    page = (ROOT / "results/mixed-tables/mixed-tables.md").read_text()
    trees = page.split("## Trees that tell samples")[1].splitlines()
    for method in ("Gaussian copula", "arfpy", "mostlyai-engine", "Roundtrip"):
        row = next(line for line in trees if line.startswith(f"| {method} |"))
        assert " | ".join(row.split(" | ")[:5]) + " |" in README


def test_training_speed_is_the_benchmarks():
    result = json.loads((ROOT / "benchmarks/results/training_speed.json").read_text())
    assert f"{result['speedup']:.1f} times as fast" in WORDS
    assert f"{result['roundtrip_ms']:.0f} ms where" in WORDS
    assert f"takes {result['pyroundtrip_ms']:.0f} ms" in WORDS
    assert f"at {result['share_of_gemm_rate']:.0%} of" in WORDS


def test_outliers_and_images_are_those_of_the_results():
    records = json.loads((ROOT / "results/table2/runs.json").read_text())
    sets = ("Shuttle", "Mammography", "ForestCover")
    for method in ("OC-SVM", "Isolation Forest", "ECOD", "MAF", "Roundtrip"):
        mine = [r for r in records if r["method"] == method and r["dataset"] in sets]
        assert len(mine) == 9
        precision = [
            np.mean([r["precision_at_k"] for r in mine if r["dataset"] == each]) for each in sets
        ]
        auroc = np.mean([r["auroc"] for r in mine])
        row = " | ".join(f"{value:.3f}" for value in (*precision, auroc))
        assert f"| {method} | {row} |" in README
    mnist = json.loads((ROOT / "results/fig3/runs.json").read_text())[0]
    assert f"right for {100 * mnist['accuracy']:.2f} %" in WORDS
    quality = mnist["quality"]
    assert f"assigns {100 * quality['recognised']:.1f} % of {quality['generated']:,}" in WORDS
