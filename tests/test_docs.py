"""The code in the documents runs and prints what they say."""

from pathlib import Path

import pytest
from documents import run_blocks

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.filterwarnings("ignore:.*did not converge:roundtrip.DensityWarning")
def test_extending_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(DOCS / "extending.md")
