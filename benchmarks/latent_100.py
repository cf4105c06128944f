"""What an estimate is worth at 100 latent dimensions: the paper's networks for images, on MNIST.

    python benchmarks/latent_100.py --data FOLDER --budget 600      # or set ROUNDTRIP_DATA

Trains `Roundtrip.paper_images` with classes and estimates p(x | y) of a few test images three ways:
by importance sampling as in the paper (40,000 draws around H(x), width 0.01), by the closed form of
eq. (12), and by the adaptive engine. Results go to results/latent-100; an interrupted run resumes
where it stopped.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from roundtrip import DensityWarning, Roundtrip
from roundtrip.datasets import load_mnist
from roundtrip.reproduce.fits import fitted, settings_name, told
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log

METHODS = {
    "paper's proposal": {"method": "importance", "n_samples": 40_000},
    "Laplace": {"method": "laplace"},
    "adaptive": {"method": "adaptive"},
}


def measure(request, key, images):
    data = load_mnist(data_home=request.data_home)
    rows, labels = data.fitting_rows()
    est = Roundtrip.paper_images(random_state=0)
    est, record = fitted(request, key, est, rows, context=labels)
    X, y = data.test[:images], data.test_labels[:images]
    for name, settings in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensityWarning)
            frame = est.density(X, context=y, **settings).to_frame()
        record[name] = {
            # JSON has no NaN and no infinity.
            column: [value if np.isfinite(value) else None for value in values.astype(float)]
            for column, values in frame.items()
        }
    return record | {"sigma": est.sigma_, "labels": y.tolist(), "images": len(X)}


def page(record):
    def cell(name, place):
        columns = record[name]
        value, error = columns["log_density"][place], columns["std_error"][place]
        if value is None or error is None:
            return "-" if value is None else f"{value:.1f}"
        k = columns["pareto_k"][place]
        return f"{value:.1f} ± {error:.2g} (k {'unknown' if k is None else f'{k:.1f}'})"

    rows = [
        [str(label), *(cell(name, place) for name in METHODS)]
        for place, label in enumerate(record["labels"])
    ]
    certain = int(sum(record["adaptive"]["converged"]))
    return "\n\n".join(
        [
            "# Densities at 100 latent dimensions",
            f"`Roundtrip.paper_images` on MNIST, {told(record)}; sigma {record['sigma']:g}. Log "
            "density of test images given their class, ± standard error, and the Pareto k of the "
            "importance weights (no error bar is to be trusted above 0.7).",
            markdown_table(["digit", *METHODS], rows),
            f"The adaptive engine calls {certain} of {record['images']} certain.",
        ]
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds of training")
    parser.add_argument("--images", type=int, default=10)
    arguments = parser.parse_args()
    request = Request("latent-100", data_home=arguments.data)
    key = {
        "dataset": "MNIST",
        "budget": arguments.budget,
        "images": arguments.images,
        "settings": settings_name(Roundtrip.paper_images(random_state=0), pixels=784),
    }
    run = partial(measure, request, key, arguments.images)
    text = page(Log(1).run(request.runs(), key, run, "sigma"))
    request.write_text("latent-100.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
