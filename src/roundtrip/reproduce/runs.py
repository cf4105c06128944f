"""Results of single runs in a JSON file, so that an interrupted experiment can be resumed."""

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
"""Parts of a key that the log does not show."""


class Runs:
    """Records of a file; each is a dict that contains its key.

    Parameters
    ----------
    path : Path
        The file, which need not exist yet.

    Examples
    --------
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
        """First record that agrees with all entries of `key`, or None."""
        return next((record for record in self.records if _same(record, key)), None)

    def __getitem__(self, key: Key) -> dict[str, Any]:
        """Record of `key`; raises a `KeyError` if it has not been computed."""
        found = self.find(key)
        if found is None:
            raise KeyError(str(dict(key)))
        return found

    def forget(self, key: Key) -> None:
        """Remove the record of `key`, if there is one."""
        self.records = [record for record in self.records if record is not self.find(key)]

    def computed(self, key: Key, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Record of `key`, computed and written to the file if it is not there yet."""
        found = self.find(key)
        if found is not None:
            return found
        record = {**key, **environment(), **compute()}
        text = json.dumps(record, allow_nan=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        earlier = self.records
        self._read()
        # Keeps records that another process has added meanwhile.
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
                raise ValueError("it is not a list of records")
        except ValueError as error:
            raise ValueError(
                f"{self.path} is not a file of results ({error}); move it away to start again"
            ) from error
        self.records = records


def _same(record: Key, key: Key) -> bool:
    return all(record.get(name) == value for name, value in key.items())


def environment() -> dict[str, Any]:
    """Versions, threads and cores, on which results depend besides code and seed."""
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
    """Prints a line on stderr before each run, and its result after it.

    Parameters
    ----------
    total : int
        Number of runs.
    quiet : bool, default=False
        Whether to print nothing.
    """

    def __init__(self, total: int, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._total = total
        self._done = 0

    def run(
        self, runs: Runs, key: Key, compute: Callable[[], Mapping[str, Any]], result: str
    ) -> dict[str, Any]:
        """Call `runs.computed` and print the entry `result` of its record."""
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
