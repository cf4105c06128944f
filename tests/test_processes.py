"""The library starts no process by a fork, which hangs after threads were used."""

import re
from pathlib import Path

import pytest

import roundtrip

SOURCES = sorted(Path(roundtrip.__file__).parent.rglob("*.py"))
STARTS = re.compile(r"os\.fork|multiprocessing|ProcessPoolExecutor|mp\.Process|Parallel\(")


@pytest.mark.parametrize("path", [path for path in SOURCES if STARTS.search(path.read_text())])
def test_processes_are_spawned(path):
    text = path.read_text()
    assert "os.fork" not in text
    assert len(re.findall(r"ProcessPoolExecutor\(|Process\(|Pool\(", text)) == len(
        re.findall(r"get_context\(\"spawn\"\)", text)
    )
