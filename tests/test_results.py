"""The documents show what the committed results say, and the pages follow from the numbers."""

import importlib.util
import itertools
import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from roundtrip.reproduce import EXPERIMENTS, Request, reproduce
from roundtrip.reproduce.methods import PAPER

ROOT = Path(__file__).parent.parent
RESULTS = [name for name in EXPERIMENTS if (ROOT / "results" / name / "runs.json").exists()]
DOCUMENTED = ("fig2", "fig3", "figS1", "figS2", "table1", "table2")


def test_results_are_there_and_documented():
    document = (ROOT / "docs" / "results.md").read_text()
    for name in DOCUMENTED:
        assert name in RESULTS
        assert f"<!-- begin: results/{name}/{name}.md -->" in document


def test_documents_show_the_committed_pages():
    spec = importlib.util.spec_from_file_location("include", ROOT / "docs" / "include.py")
    include = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(include)
    for document in (ROOT / "docs").glob("*.md"):
        text = document.read_text()
        assert include.included(text) == text, f"run python docs/include.py for {document.name}"


@pytest.mark.parametrize("name", RESULTS)
def test_pages_follow_from_the_numbers(name, tmp_path, monkeypatch):
    """Nothing is computed: page and picture are made again from the committed runs."""
    if name in ("table1", "table2") and not os.getenv("ROUNDTRIP_DATA"):
        pytest.skip("needs ROUNDTRIP_DATA")
    folder = tmp_path / name
    shutil.copytree(ROOT / "results" / name, folder)
    records = json.loads((folder / "runs.json").read_text())
    module = sys.modules[EXPERIMENTS[name].__module__]
    monkeypatch.setattr(module, "_measure", lambda *_, **__: pytest.fail("computes anew"))
    if name == "table2":  # measures in processes of their own
        monkeypatch.setattr(module, "_measure_alone", module._measure)
    options = {}
    if name == "table1":
        known = {(r["dataset"], r["method"], r["seed"]) for r in records}
        datasets, methods = ({each[place] for each in known} for place in (0, 1))
        # Of some methods there may be more seeds than of others: the page is of those of all.
        complete = (
            seed
            for seed in itertools.count()
            if not all((d, m, seed) in known for d in datasets for m in methods)
        )
        options = {"methods": sorted(methods), "seeds": next(complete)}
    elif name != "figS1" and "method" in records[0]:  # figS1 is of the paper's preset
        # Of some methods there may be a part only: the page is of those that are complete.
        whole = getattr(module, "WHOLE", None)
        count = Counter(r["method"] for r in records if whole is None or r["dataset"] != whole)
        options = {"methods": [m for m in count if count[m] == max(count.values())]}
    if name == "figS1":
        of_paper = {record["budget"] for record in records}
    else:
        shown = options.get("methods", ())
        of_paper = {r["budget"] for r in records if r.get("method") == PAPER and PAPER in shown}
    if of_paper:
        (options["paper_budget"],) = of_paper
    committed = (folder / f"{name}.md").read_text()
    assert reproduce(Request(name, tmp_path, quiet=True, **options)) == committed
    for picture in (ROOT / "results" / name).glob("*.svg"):
        assert (folder / picture.name).read_bytes() == picture.read_bytes()


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("small-tables", "small_tables_page"),
        ("mixed-tables", "mixed_tables_page"),
        ("imputation", "imputation_page"),
        ("parts-of-rows", "parts_of_rows"),
        ("any-conditional", "any_conditional"),
        ("prediction", "prediction"),
    ],
)
def test_pages_of_benchmarks_follow_from_the_numbers(name, module, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    page = importlib.import_module(module).page
    folder = ROOT / "results" / name
    if not folder.exists():
        pytest.skip("not computed yet")
    records = json.loads((folder / "runs.json").read_text())
    assert page(records) == (folder / f"{name}.md").read_text()
