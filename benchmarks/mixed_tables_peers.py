"""What the scripts of other packages share: files in, files out.

Runs in the environment of these packages, which does not have Roundtrip.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd


def run(fit_and_sample, packages):
    """Read the request, fit, draw, and write samples and facts.

    Parameters
    ----------
    fit_and_sample : callable
        Given the training rows and the request, returns facts of its own, and a function that draws
        the samples.
    packages : sequence of str
        Packages whose versions are to be recorded.
    """
    folder = Path(sys.argv[1])
    request = json.loads((folder / "request.json").read_text()) | {"folder": str(folder)}
    train = pd.read_parquet(folder / "train.parquet")
    start, cpu_start = time.perf_counter(), time.process_time()
    facts, sample = fit_and_sample(train, request)
    fitted, cpu_seconds = time.perf_counter(), time.process_time() - cpu_start
    samples = sample(request["rows"])
    facts |= {
        "fit_seconds": fitted - start,
        "cpu_seconds": cpu_seconds,
        "sample_seconds": time.perf_counter() - fitted,
        "versions": {name: version(name) for name in ("pandas", "numpy", *packages)},
    }
    samples.to_parquet(folder / "samples.parquet")
    (folder / "facts.json").write_text(json.dumps(facts))
