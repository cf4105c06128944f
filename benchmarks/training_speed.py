"""One training step of the paper preset against the authors' pyroundtrip, in one run.

Batch 64, CASP's shape (9 features, 5 latent dimensions). pyroundtrip runs in an environment of its
own, which is created in .cache/ on the first run (or named with --reference-python). The two take
turns, so that a machine that slows down slows both. Writes benchmarks/results/training_speed.json.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from roundtrip import Roundtrip, RoundtripModel, __version__
from roundtrip.data import Rows
from roundtrip.model.networks import discriminator, mlp
from roundtrip.training.adversarial_trainer import AdversarialTrainer

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "training_speed.json"
ENVIRONMENT = HERE.parent / ".cache" / "pyroundtrip"
FEATURES, LATENT_DIM, BATCH_SIZE, STEPS, TURNS = 9, 5, 64, 100, 3


def reference_python() -> Path:
    """The interpreter that has pyroundtrip, installed if necessary."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        print("installing pyroundtrip and tensorflow-cpu into", ENVIRONMENT, file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        requirements = HERE / "pyroundtrip-requirements.txt"
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", requirements], check=True)
    return python


def reference_times(python: Path) -> list[float]:
    command = [python, HERE / "reference_step.py", FEATURES, LATENT_DIM, BATCH_SIZE, STEPS]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def paper_trainer() -> AdversarialTrainer:
    paper = Roundtrip.paper(latent_dim=LATENT_DIM)
    network, objective = paper.network, paper.objective
    rng = torch.Generator().manual_seed(0)
    model = RoundtripModel(
        mlp(LATENT_DIM, FEATURES, network.generator_widths, rng=rng),
        mlp(FEATURES, LATENT_DIM, network.encoder_widths, rng=rng),
        LATENT_DIM,
        sigma=1.0,
    )
    return AdversarialTrainer(
        model,
        discriminator(FEATURES, objective.discriminator_x, rng=rng),
        discriminator(LATENT_DIM, objective.discriminator_z, rng=rng),
        alpha=objective.alpha,
        beta=objective.beta,
        learning_rate=objective.learning_rate,
        pool_size=objective.pool_size,
        averaging=objective.averaging,
        rng=rng,
    )


def own_times(trainer: AdversarialTrainer, rows: Rows) -> list[float]:
    for _ in range(10):
        trainer.step(rows)
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        trainer.step(rows)
        times.append(time.perf_counter() - start)
    return times


def gemm_rate(rows: int) -> float:
    """Floating-point operations per second of a (rows x 512) by (512 x 512) product."""
    a, b = torch.randn(rows, 512), torch.randn(512, 512)
    repeats = 400
    for _ in range(50):
        a @ b
    start = time.perf_counter()
    for _ in range(repeats):
        a @ b
    return 2 * rows * 512 * 512 * repeats / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference-python", type=Path, help="an interpreter with pyroundtrip")
    python = parser.parse_args().reference_python or reference_python()

    trainer = paper_trainer()
    rows = Rows.without_context(torch.randn(BATCH_SIZE, FEATURES))
    with FlopCounterMode(display=False) as counter:
        trainer.step(rows)
    flops = counter.get_total_flops()
    own, reference, rates = [], [], []
    for _ in range(TURNS):
        rates.append(gemm_rate(BATCH_SIZE))
        own += own_times(trainer, rows)
        reference += reference_times(python)
    own_ms, reference_ms = 1e3 * np.median(own), 1e3 * np.median(reference)
    rate = float(np.median(rates))
    result = {
        "roundtrip_ms": own_ms,
        "pyroundtrip_ms": reference_ms,
        "speedup": reference_ms / own_ms,
        "gflop_a_step": flops / 1e9,
        "gemm_gflops": rate / 1e9,
        "share_of_gemm_rate": flops / (own_ms / 1e3) / rate,
        "batch_size": BATCH_SIZE,
        "roundtrip": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"roundtrip            {own_ms:7.1f} ms per step (median of {len(own)})")
    print(f"pyroundtrip 2.0.1    {reference_ms:7.1f} ms per step (median of {len(reference)})")
    print(f"times faster         {result['speedup']:7.2f}")
    print(f"GEMM, {BATCH_SIZE} x 512 x 512 {rate / 1e9:7.0f} GFLOP/s")
    print(f"share of that rate   {result['share_of_gemm_rate']:7.0%}")


if __name__ == "__main__":
    main()
