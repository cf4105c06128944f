"""Fit the paper's 8-octagon mixture, plot the true and the estimated density, save the model."""

import time
import warnings
from pathlib import Path

import numpy as np

from roundtrip import DensityWarning, Roundtrip, load
from roundtrip.datasets import make_octagon_mixture
from roundtrip.plots import density_panels

OUTPUT = Path("demo")
EDGE, POINTS = 6.0, 80


def main() -> None:
    """Run the demo and write its picture and model to the folder `demo`."""
    OUTPUT.mkdir(exist_ok=True)
    data = make_octagon_mixture(20_000, random_state=0)
    train, test = data.X[:18_000], data.X[18_000:]

    start = time.perf_counter()
    est = Roundtrip(latent_dim=2, max_epochs=40, random_state=0, verbose=1).fit(train)
    print(f"fitted {len(train)} rows in {time.perf_counter() - start:.0f} s")
    est.save(OUTPUT / "model.rt")

    est = load(OUTPUT / "model.rt")
    result = est.density(test[:500])
    truth = data.log_density(test[:500])
    print(result.summary())
    print(f"true mean log density of these rows: {truth.mean():.4f}")

    axis = np.linspace(-EDGE, EDGE, POINTS)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    shape = (POINTS, POINTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)  # far corners are dark, converged or not
        estimated = est.density(grid, tol=0.2).log_density  # a finer picture would look the same
    figure = density_panels(
        {
            "true density": np.exp(data.log_density(grid)).reshape(shape),
            "Roundtrip": np.exp(estimated).reshape(shape),
        },
        (-EDGE, EDGE, -EDGE, EDGE),
    )
    figure.savefig(OUTPUT / "density.png", dpi=120)
    print(f"picture: {(OUTPUT / 'density.png').resolve()}")
    print(f"model:   {(OUTPUT / 'model.rt').resolve()}")


if __name__ == "__main__":
    main()
