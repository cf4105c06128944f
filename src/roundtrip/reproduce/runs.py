"""Results of single runs in a JSON file: each is computed once, and a stop loses at most one."""

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import sklearn
import torch
from rich.console import Console

from roundtrip import __version__
from roundtrip.atomic import atomic_write

Key = Mapping[str, Any]


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
        if path.exists():
            try:
                self.records = json.loads(path.read_text())
            except ValueError as error:
                raise ValueError(
                    f"{path} is not a file of results ({error}); move it away to begin anew"
                ) from error

    def find(self, key: Key) -> dict[str, Any] | None:
        """The first record that agrees with all entries of `key`."""
        return next(iter(self.matching(key)), None)

    def matching(self, key: Key) -> Iterable[dict[str, Any]]:
        """All records that agree with all entries of `key`."""
        return (r for r in self.records if all(r.get(name) == key[name] for name in key))

    def computed(self, key: Key, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The record of `key`; computed and written to the file if it is not there yet."""
        found = self.find(key)
        if found is not None:
            return found
        record = {**key, **compute(), **environment()}
        self.records.append(record)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as temporary:
            temporary.write_text(json.dumps(self.records, indent=2) + "\n")
        return record


def environment() -> dict[str, Any]:
    """What a figure depends on besides code and seed."""
    return {
        "roundtrip": __version__,
        "torch": torch.__version__,
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
        name = f"[{self._done}/{self._total}] " + ", ".join(str(value) for value in key.values())
        if runs.find(key) is not None:
            self._console.print(f"{name}: known", markup=False)
            return runs.computed(key, compute)
        self._console.print(f"{name} ...", markup=False)
        start = time.perf_counter()
        record = runs.computed(key, compute)
        seconds = time.perf_counter() - start
        self._console.print(f"    {result} {record[result]:.4g} after {seconds:.0f} s")
        return record
