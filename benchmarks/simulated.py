"""Truth, paper preset, default preset and baselines on the paper's three simulated sets.

The baselines get 120 seconds to fit, the presets as long as they take. Prints a table and writes it
to benchmarks/results/simulated.{json,md}. Fits that are already in the JSON file are not repeated,
so an interrupted run goes on where it stopped; --fresh starts anew.
"""

import argparse
import json
import os
import platform
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch

from roundtrip import Roundtrip, __version__
from roundtrip.atomic import atomic_write
from roundtrip.baselines import BASELINES
from roundtrip.datasets import make_independent_mixture, make_involute, make_octagon_mixture

RESULTS = Path(__file__).parent / "results" / "simulated.json"
SEED = 0
TRAIN_ROWS, TEST_ROWS, TEST_DRAWS = 18_000, 2_000, 2_000

DATASETS = {
    "mixture, sd 0.1": lambda: make_independent_mixture(20_000, sd=0.1, random_state=SEED),
    "octagon": lambda: make_octagon_mixture(20_000, random_state=SEED),
    "involute": lambda: make_involute(20_000, random_state=SEED),
}
BASELINE_SECONDS = 120.0
PRESETS = {
    # The paper scales tables, not its simulations.
    "paper": lambda: Roundtrip.paper(latent_dim=2, scale=None, random_state=SEED, verbose=1),
    "default": lambda: Roundtrip(latent_dim=2, random_state=SEED, verbose=1),
    **{name: partial(baseline, random_state=SEED) for name, baseline in BASELINES.items()},
}


def measure(dataset: str, preset: str) -> dict:
    data = DATASETS[dataset]()
    train, test = data.X[:TRAIN_ROWS], data.X[TRAIN_ROWS:]
    est = PRESETS[preset]()
    wall, cpu = time.perf_counter(), time.process_time()
    est.fit(train, **({"max_time": BASELINE_SECONDS} if preset in BASELINES else {}))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if preset in BASELINES:
        scores, std_error = est.score_samples(test), 0.0
    else:
        # The default has no single sigma; its own adaptive estimate is both surer and cheaper.
        draws = {"method": "importance", "n_samples": TEST_DRAWS} if preset == "paper" else {}
        result = est.density(test, **draws)
        scores, std_error = result.log_density, float(np.median(result.std_error))
    gap = scores - data.log_density(test)
    return {
        "dataset": dataset,
        "preset": preset,
        "truth": float(data.log_density(test).mean()),
        "log_likelihood": float(scores.mean()),
        "gap": float(gap.mean()),
        "gap_standard_error": float(gap.std(ddof=1) / np.sqrt(len(gap))),
        "median_std_error": std_error,
        "sigma": getattr(est, "sigma_", None),
        "epochs": getattr(est, "n_iter_", None),
        "best_epoch": getattr(est, "best_epoch_", None),
        "fit_seconds": wall,
        "fit_cpu_seconds": cpu,
        "setting": setting(),
    }


def setting() -> dict:
    """What a result depends on besides the code; results of another setting are not reused."""
    return {
        "seed": SEED,
        "train_rows": TRAIN_ROWS,
        "test_rows": TEST_ROWS,
        "test_draws": TEST_DRAWS,
        "roundtrip": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def table(results: list[dict]) -> str:
    lines = [
        "| data | preset | truth | log-likelihood | gap to truth | sigma | epochs (best) "
        "| fit, s | CPU, s | CPU, of paper's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    paper_cpu = {r["dataset"]: r["fit_cpu_seconds"] for r in results if r["preset"] == "paper"}
    for r in results:
        share = r["fit_cpu_seconds"] / paper_cpu.get(r["dataset"], float("nan"))
        sigma = "" if r["sigma"] is None else f"{r['sigma']:.3g}"
        epochs = "" if r["epochs"] is None else f"{r['epochs']} ({r['best_epoch']})"
        lines.append(
            f"| {r['dataset']} | {r['preset']} | {r['truth']:.3f} | {r['log_likelihood']:.3f} "
            f"| {r['gap']:+.3f} ± {r['gap_standard_error']:.3f} | {sigma} "
            f"| {epochs} | {r['fit_seconds']:.0f} "
            f"| {r['fit_cpu_seconds']:.0f} | {share:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=list(PRESETS))
    arguments = parser.parse_args()
    results = []
    if RESULTS.exists() and not arguments.fresh:
        earlier = json.loads(RESULTS.read_text())
        results = [result for result in earlier if result["setting"] == setting()]
    for preset in arguments.presets:
        for dataset in DATASETS:
            if any((r["dataset"], r["preset"]) == (dataset, preset) for r in results):
                continue
            results.append(measure(dataset, preset))
            results.sort(
                key=lambda r: (list(DATASETS).index(r["dataset"]), list(PRESETS).index(r["preset"]))
            )
            RESULTS.parent.mkdir(exist_ok=True)
            with atomic_write(RESULTS) as temporary:
                temporary.write_text(json.dumps(results, indent=2) + "\n")
            RESULTS.with_suffix(".md").write_text(table(results) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
