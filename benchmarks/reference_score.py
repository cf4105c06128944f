"""Time the scoring of a few points by the authors; run by scoring_paper.py in their environment."""

import json
import sys
import time

import numpy as np
from reference_step import paper_model


def main() -> None:
    features, latent_dim, points = (int(argument) for argument in sys.argv[1:])
    model = paper_model(features, latent_dim)
    x = np.random.default_rng(0).normal(size=(points, features)).astype("float32")
    model.estimate_px_with_IS(x[:1], sd_x=0.05, scale=0.5, sample_size=40_000)  # warm up
    start = time.perf_counter()
    model.estimate_px_with_IS(x, sd_x=0.05, scale=0.5, sample_size=40_000)
    print(json.dumps(time.perf_counter() - start))


if __name__ == "__main__":
    main()
