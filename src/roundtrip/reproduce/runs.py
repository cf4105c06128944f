"""Results of single runs in a JSON file: each is computed once, and a stop loses at most one."""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from rich.console import Console

from roundtrip import __version__
from roundtrip.io.atomic import atomic_write

Key = Mapping[str, Any]

HIDDEN = ("settings",)
"""Parts of a key that mean nothing to people."""


class Runs:
    """The records of a file, each a dict that begins with the key it is known by.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     runs = Runs(Path(folder, "runs.json"))
    ...     _ = runs.computed({"method": "KDE", "seed": 0}, lambda: {"score": 1.5})
    ...     again = Runs(Path(folder, "runs.json"))
    ...     again.find({"method": "KDE"})["score"]
    1.5
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        self._read()

    def find(self, key: Key) -> dict[str, Any] | None:
        """The first record that agrees with all entries of `key`."""
        return next((record for record in self.records if _same(record, key)), None)

    def __getitem__(self, key: Key) -> dict[str, Any]:
        """The record of a key that was computed."""
        found = self.find(key)
        if found is None:
            raise KeyError(str(dict(key)))
        return found

    def forget(self, key: Key) -> None:
        """Leave out the record of a key, if there is one."""
        self.records = [record for record in self.records if record is not self.find(key)]

    def computed(self, key: Key, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The record of `key`; computed and written to the file if it is not there yet."""
        found = self.find(key)
        if found is not None:
            return found
        record = {**key, **environment(), **compute()}
        text = json.dumps(record, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        earlier = self.records
        self._read()
        # What another process has added meanwhile stays.
        self.records = earlier + [r for r in self.records if r not in earlier and not _same(r, key)]
        self.records.append(json.loads(text))
        with atomic_write(self.path) as temporary:
            temporary.write_text(json.dumps(self.records, indent=1) + "\n")
        return self.records[-1]

    def _read(self) -> None:
        if not self.path.exists():
            return
        try:
            records = json.loads(self.path.read_text())
            if not (isinstance(records, list) and all(isinstance(r, dict) for r in records)):
                raise ValueError("it holds no list of records")
        except ValueError as error:
            raise ValueError(
                f"{self.path} is not a file of results ({error}); move it away to begin anew"
            ) from error
        self.records = records


def _same(record: Key, key: Key) -> bool:
    return all(record.get(name) == value for name, value in key.items())


def environment() -> dict[str, Any]:
    """What a figure depends on besides code and seed."""
    return {
        "roundtrip": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scikit_learn": sklearn.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
    }


class Log:
    """One line a run on stderr, before and after it: what is running, what it gave."""

    def __init__(self, total: int, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._total = total
        self._done = 0

    def run(
        self, runs: Runs, key: Key, compute: Callable[[], Mapping[str, Any]], result: str
    ) -> dict[str, Any]:
        """`runs.computed`, told about; `result` names the number to show."""
        self._done += 1
        parts = [f"{part} {value}" for part, value in key.items() if part not in HIDDEN]
        name = f"[{self._done}/{self._total}] " + ", ".join(parts)
        if runs.find(key) is not None:
            self._console.print(f"{name}: known", markup=False)
            return runs.computed(key, compute)
        self._console.print(f"{name} ...", markup=False)
        start = time.perf_counter()
        record = runs.computed(key, compute)
        seconds = time.perf_counter() - start
        self._console.print(f"    {result} {record[result]:.4g} after {seconds:.0f} s")
        return record
