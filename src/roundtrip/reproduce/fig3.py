"""Fig. 3: images generated class by class, the likeliest first; and what their density is worth."""

import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix

from roundtrip.classifier import RoundtripClassifier
from roundtrip.datasets import Dataset, load_cifar10, load_mnist
from roundtrip.density import DensityWarning
from roundtrip.estimator import Roundtrip
from roundtrip.plots import image_grid
from roundtrip.reproduce.fits import fitted, machine, settings_name, told
from roundtrip.reproduce.generation import Generated, generate_images
from roundtrip.reproduce.recogniser import Recogniser
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log, Runs

DATASETS = {"MNIST": load_mnist, "CIFAR-10": load_cifar10}
PIXELS = {"MNIST": 28 * 28, "CIFAR-10": 32 * 32 * 3}
BUDGET, QUICK_BUDGET = {"MNIST": 600.0, "CIFAR-10": 300.0}, 20.0
TEST_IMAGES, QUICK_TEST_IMAGES = {"MNIST": 10_000, "CIFAR-10": 300}, 100
PER_CLASS, QUICK_PER_CLASS = {"MNIST": 400, "CIFAR-10": 20}, 12
SHOWN = 20
RECOGNISER_EPOCHS, QUICK_RECOGNISER_EPOCHS = 6, 1
QUICK_IMAGES = 6000
TOL = 0.1
"""Nats, of the log densities of generated images."""


def fig3(request: Request) -> str:
    """Fit p(x | y) to both data sets, generate, classify; pictures, and the page in Markdown."""
    request.refuse("seeds", "methods", "paper_budget")
    runs = request.runs()
    log = Log(len(DATASETS), quiet=request.quiet)
    for name in DATASETS:
        key = _key(request, name)
        log.run(runs, key, partial(_measure, request, key), "accuracy")
    text = _page(request, runs)
    request.write_text("fig3.md", text)
    return text


def _key(request: Request, name: str) -> dict[str, Any]:
    quick = request.quick
    own = QUICK_BUDGET if quick else BUDGET[name]
    epochs = QUICK_RECOGNISER_EPOCHS if quick else RECOGNISER_EPOCHS
    return {
        "dataset": name,
        "seed": 0,
        "budget": own if request.budget is None else request.budget,
        "test_images": QUICK_TEST_IMAGES if quick else TEST_IMAGES[name],
        "per_class": QUICK_PER_CLASS if quick else PER_CLASS[name],
        "settings": settings_name(_estimator(), pixels=PIXELS[name]),
        "tol": TOL,
        "recogniser_epochs": epochs,
    }


def _estimator() -> Roundtrip:
    return Roundtrip(random_state=0)


def _measure(request: Request, key: Mapping[str, Any]) -> dict[str, Any]:
    name = key["dataset"]
    data = DATASETS[name](data_home=request.data_home, download=request.download)
    X, y = data.fitting_rows()
    assert y is not None
    if request.quick:
        X, y = X[:QUICK_IMAGES], y[:QUICK_IMAGES]
    of_fit = {name: value for name, value in key.items() if name != "constants"}
    est, record = fitted(request, of_fit, _estimator(), X, context=y)
    test, truth = data.test[: key["test_images"]], data.test_labels
    assert truth is not None
    truth = truth[: key["test_images"]]
    classifier = RoundtripClassifier.from_density(est, class_count=np.bincount(y))
    start = time.perf_counter()
    posterior = classifier.posterior(test)
    predicted = classifier.classes_[posterior.probability.argmax(axis=1)]
    record |= {
        "classify_seconds": time.perf_counter() - start,
        "accuracy": float((predicted == truth).mean()),
        "posterior_converged": float(posterior.converged.mean()),
        "confusion": confusion_matrix(truth, predicted, labels=classifier.classes_).tolist(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)  # counted below
        generated = generate_images(est, key["per_class"], random_state=0, tol=TOL)
    _draw(request, name, data, generated)
    record["generated_converged"] = float(generated.density.converged.mean())
    if name == "MNIST":
        record["quality"] = _quality(request, X, y, data, generated)
    return record


def _quality(
    request: Request, X: np.ndarray, y: np.ndarray, data: Dataset, generated: Generated
) -> dict[str, Any]:
    """How many generated digits a recogniser of real ones names as asked for, and which."""
    assert data.test_labels is not None
    epochs = QUICK_RECOGNISER_EPOCHS if request.quick else RECOGNISER_EPOCHS
    recogniser = Recogniser(epochs=epochs, seed=0).fit(X, y, quiet=request.quiet)
    labels = np.array(generated.labels)
    right = recogniser.predict(generated.images) == labels
    classes = np.unique(labels)
    # Images come class by class, the likeliest first.
    by_class = right.reshape(len(classes), -1)
    quarter = by_class.shape[1] // 4
    top, bottom = by_class[:, :quarter], by_class[:, -quarter:]
    low, high = difference_interval(int(top.sum()), int(bottom.sum()), top.size)
    return {
        "recogniser_accuracy": recogniser.accuracy(data.test, data.test_labels),
        "generated": len(right),
        "recognised": float(right.mean()),
        "recognised_by_class": by_class.mean(axis=1).tolist(),
        "top_by_class": top.mean(axis=1).tolist(),
        "bottom_by_class": bottom.mean(axis=1).tolist(),
        "top_quarter": float(top.mean()),
        "bottom_quarter": float(bottom.mean()),
        "difference_low": low,
        "difference_high": high,
    }


def difference_interval(first: int, second: int, trials: int) -> tuple[float, float]:
    """95 % interval of the difference of two shares, `first` and `second` of `trials` each.

    That of Agresti and Caffo (2000): one success and one failure more in each. It stays honest
    where a share is near 1, where a bootstrap sees no variation.

    >>> low, high = difference_interval(100, 90, 100)
    >>> round(low, 3), round(high, 3)
    (0.035, 0.161)
    """
    a, b = ((count + 1) / (trials + 2) for count in (first, second))
    reach = 1.96 * np.sqrt((a * (1 - a) + b * (1 - b)) / (trials + 2))
    return float(a - b - reach), float(a - b + reach)


def _draw(request: Request, name: str, data: Dataset, generated: Generated) -> None:
    """The grid: of each class some images, evenly from the likeliest to the least likely."""
    names = data.label_names or tuple(map(str, range(10)))
    per_class = len(generated.labels) // len(names)
    shown = np.linspace(0, per_class - 1, min(SHOWN, per_class)).round().astype(int)
    places = np.concatenate([each * per_class + shown for each in range(len(names))])
    captions = [f"{value:.0f}" for value in generated.density.log_density[places]]
    grid = image_grid(generated.images[places], captions, names)
    request.write_figure(grid, part=f"-{name.lower()}", vector=False)


def _page(request: Request, runs: Runs) -> str:
    mnist, cifar = (runs[_key(request, name)] for name in DATASETS)
    quality = mnist["quality"]
    header = ["digit", *map(str, range(10))]
    confusion = [[str(digit), *map(str, row)] for digit, row in enumerate(mnist["confusion"])]
    parts = [
        "# Fig. 3: generated images by decreasing density, and Bayes classification",
        f"Seed 0; {machine([mnist, cifar])}; `roundtrip reproduce fig3`."
        + (" Quick run; it means little." if request.quick else ""),
        "## MNIST",
        f"{mnist['train_rows']:,} images, {told(mnist)}. Bayes classification by density is right "
        f"for {_share(mnist)} of {mnist['test_images']:,} test images "
        f"({mnist['classify_seconds']:.0f} s; probabilities are certain for "
        f"{mnist['posterior_converged']:.1%}). Rows are the true digits, columns the predicted:",
        markdown_table(header, confusion),
        f"A convolutional network trained on real digits ({quality['recogniser_accuracy']:.2%} on "
        f"real test digits) recognises {quality['recognised']:.1%} of {quality['generated']:,} "
        f"generated digits as asked for; {quality['top_quarter']:.1%} of the likeliest quarter of "
        f"each class and {quality['bottom_quarter']:.1%} of the least likely: a difference of "
        f"{quality['top_quarter'] - quality['bottom_quarter']:.1%}, 95 % interval "
        f"{quality['difference_low']:.1%} to {quality['difference_high']:.1%}. By class:",
        markdown_table(
            header,
            [
                [name, *(f"{share:.0%}" for share in quality[entry])]
                for name, entry in (
                    ("all", "recognised_by_class"),
                    ("likeliest quarter", "top_by_class"),
                    ("least likely quarter", "bottom_by_class"),
                )
            ],
        ),
        f"Log densities of {mnist['generated_converged']:.1%} of the generated digits are certain "
        f"to {TOL:g} nats. Below each image its log density:",
        "![generated digits with their log densities](fig3-mnist.png)",
        "## CIFAR-10",
        f"{cifar['train_rows']:,} images, {told(cifar)}. Bayes accuracy "
        f"{_share(cifar)} on {cifar['test_images']:,} test images (certain for "
        f"{cifar['posterior_converged']:.1%}). Log densities of "
        f"{cifar['generated_converged']:.1%} of the generated images are certain to {TOL:g} nats.",
        "![generated photographs with their log densities](fig3-cifar-10.png)",
    ]
    return "\n\n".join(parts) + "\n"


def _share(record: Mapping[str, Any]) -> str:
    """The accuracy and its 95 % interval."""
    right = round(record["accuracy"] * record["test_images"])
    interval = binomtest(right, record["test_images"]).proportion_ci(method="wilson")
    return f"{record['accuracy']:.2%} (95 % interval {interval.low:.2%} to {interval.high:.2%})"
