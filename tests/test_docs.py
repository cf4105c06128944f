"""The code in the documents runs and prints what they say."""

import re
from pathlib import Path

import pytest
from documents import run_blocks

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DESIGN = DOCS / "design.md"
PAGES = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]


@pytest.mark.filterwarnings("ignore:.*did not converge:roundtrip.DensityWarning")
def test_extending_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(DOCS / "extending.md")


def _exists(path):
    inside = ROOT / "src" / "roundtrip"
    return any((folder / path).exists() for folder in (ROOT, inside)) or any(inside.rglob(path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_pages_name_exist(page):
    text = page.read_text()
    for path in re.findall(r"`((?:[\w-]+/)*[\w-]+\.py)`", text):
        assert _exists(path), path
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (page.parent / link).exists(), link


def test_design_names_functions_that_exist():
    found = re.findall(r"`([\w/]+\.py)`: ((?:`\w+(?:\.\w+)?`(?:, )?)+)", DESIGN.read_text())
    assert len(found) > 12
    for path, names in found:
        file = ROOT / path if path.startswith("tests") else ROOT / "src" / "roundtrip" / path
        for name in re.findall(r"\w+(?=`)", names):
            assert re.search(rf"^ *(def|class) {name}\b|^{name}\b", file.read_text(), re.M), name
