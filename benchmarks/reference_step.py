"""Time one training step of the authors' package; run by training_speed.py in its environment."""

import json
import sys
import tempfile
import time

import numpy as np
from pyroundtrip import Roundtrip


def paper_model(features: int, latent_dim: int) -> Roundtrip:
    """The authors' model with the paper's networks."""
    return Roundtrip(
        {
            "x_dim": features,
            "z_dim": latent_dim,
            "g_units": [512] * 10,
            "e_units": [256] * 10,
            "dx_units": [256] * 4,
            "dz_units": [128] * 2,
            "lr": 2e-4,
            "alpha": 10.0,
            "gamma": 0.0,
            "output_dir": tempfile.mkdtemp(),
            "dataset": "benchmark",
            "save_model": False,
        },
        random_seed=0,
    )


def main() -> None:
    features, latent_dim, batch_size, steps = (int(argument) for argument in sys.argv[1:])
    model = paper_model(features, latent_dim)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch_size, features)).astype("float32")

    def step() -> None:
        # As in its own training loop: fresh latent draws for each of the two updates.
        for update in (model.train_disc_step, model.train_gen_step):
            update(rng.normal(size=(batch_size, latent_dim)).astype("float32"), x)

    for _ in range(10):
        step()
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
