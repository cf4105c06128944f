"""The README's figures are those of the benchmarks' files."""

import json
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_table_is_that_of_the_results():
    page = (ROOT / "results/table1/table1.md").read_text().splitlines()
    for method in ("method", "Gaussian mixture", "MAF", "NSF", "Roundtrip"):
        row = next(line for line in page if line.startswith(f"| {method} |"))
        ours = row.split(" | ")[:4]  # behind these come the paper's figures
        assert " | ".join(ours) + " |" in README


def test_training_speed_is_the_benchmarks():
    result = json.loads((ROOT / "benchmarks/results/training_speed.json").read_text())
    words = " ".join(README.split())
    assert f"{result['speedup']:.1f} times as fast" in words
    assert f"{result['roundtrip_ms']:.0f} ms where" in words
    assert f"takes {result['pyroundtrip_ms']:.0f} ms" in words
    assert f"at {result['share_of_gemm_rate']:.0%} of" in words


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
    assert f"right for {100 * mnist['accuracy']:.2f} %" in README
    quality = mnist["quality"]
    assert f"names {100 * quality['recognised']:.1f} % of {quality['generated']:,}" in README
