"""Rank correlation with the true log density in 10 dimensions (the paper's Fig. S2).

    python benchmarks/spearman.py [--presets default paper MAF ...]

The independent mixture with components of sd 0.1, 20,000 rows to fit, 2,000 held out. Every result
is written to benchmarks/results/spearman.json once it is there, and not computed again. The paper
states 0.829 for Roundtrip at dimension 10.
"""

import argparse
import json
import os
import platform
import time
from functools import partial
from pathlib import Path

import torch
from scipy.stats import spearmanr

from roundtrip import Roundtrip
from roundtrip.atomic import atomic_write
from roundtrip.baselines import BASELINES
from roundtrip.datasets import make_independent_mixture

RESULTS = Path(__file__).parent / "results" / "spearman.json"
DIM, SD, SEED = 10, 0.1, 0
TRAIN_ROWS, TEST_ROWS = 20_000, 2_000
BASELINE_SECONDS = 120.0
PRESETS = {
    "default": lambda: Roundtrip(random_state=SEED, verbose=1),
    # The paper scales tables, not its simulations; its latent dimension there is that of the data.
    "paper": lambda: Roundtrip.paper(DIM, scale=None, random_state=SEED, verbose=1),
    **{name: partial(baseline, random_state=SEED) for name, baseline in BASELINES.items()},
}


def measure(preset: str) -> dict:
    data = make_independent_mixture(TRAIN_ROWS + TEST_ROWS, dim=DIM, sd=SD, random_state=SEED)
    train, test = data.X[:TRAIN_ROWS], data.X[TRAIN_ROWS:]
    truth = data.log_density(test)
    est = PRESETS[preset]()
    start = time.perf_counter()
    est.fit(train, **({"max_time": BASELINE_SECONDS} if preset in BASELINES else {}))
    seconds = time.perf_counter() - start
    scores = est.score_samples(test)
    return {
        "preset": preset,
        "spearman": float(spearmanr(scores, truth).statistic),
        "log_likelihood": float(scores.mean()),
        "truth": float(truth.mean()),
        "fit_seconds": seconds,
        "latent_dim": getattr(est, "latent_dim_", None),
        "seed": SEED,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=list(PRESETS))
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for preset in arguments.presets:
        if any(r["preset"] == preset for r in results):
            continue
        results.append(measure(preset))
        with atomic_write(RESULTS) as temporary:
            temporary.write_text(json.dumps(results, indent=2) + "\n")
    print("| method | Spearman | log-likelihood | truth | fit, s |\n|---|---|---|---|---|")
    for r in results:
        print(
            f"| {r['preset']} | {r['spearman']:.3f} | {r['log_likelihood']:.2f} "
            f"| {r['truth']:.2f} | {r['fit_seconds']:.0f} |"
        )


if __name__ == "__main__":
    main()
