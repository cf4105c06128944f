"""New images of each class with their densities, the likeliest first (the paper's Fig. 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from roundtrip.density.result import DensityEstimate
from roundtrip.estimator import Roundtrip
from roundtrip.parameters import check_choice, check_integer, random_stream

ORDERS = ("likelihood", "none")


@dataclass(frozen=True)
class Generated:
    """Generated images, class by class.

    Attributes
    ----------
    images : `(images, height, width, channels)` or channels first, as in `fit`.
    labels : the class of each.
    density : their log densities within their class.
    """

    images: np.ndarray
    labels: list[Any]
    density: DensityEstimate

    def to_frame(self) -> pd.DataFrame:
        """One row an image: its class, and its log density with its error."""
        frame = self.density.to_frame()
        frame.insert(0, "label", self.labels)
        return frame


def generate_images(
    est: Roundtrip,
    per_class: int,
    *,
    labels: Sequence[Any] | None = None,
    sort: str = "likelihood",
    random_state: int | np.random.RandomState | None = None,
    tol: float | None = None,
) -> Generated:
    """`per_class` images E(x | z, y) for random z of each class, by decreasing density within it.

    `labels` None: all classes of the fit.
    """
    check_integer("per_class", per_class, minimum=1)
    check_choice("sort", sort, ORDERS)
    check_is_fitted(est)
    context = est.schema_.context
    if est.schema_.images is None:
        raise ValueError("the model is of a table, not of images: use sample")
    if context is None or context.labels is None:
        raise ValueError("the model has no classes: fit it with context=labels")
    chosen = list(context.labels if labels is None else labels)
    every = [label for label in chosen for _ in range(per_class)]
    rng = random_stream(random_state)
    Z = est.model_.prior.sample(len(every), rng).numpy()
    images = est.inverse_transform(Z, context=every)
    density = est.density(images, context=every, tol=tol)
    order = np.arange(len(every))
    if sort == "likelihood":
        group = np.repeat(np.arange(len(chosen)), per_class)
        order = np.lexsort((-density.log_density, group))
    return Generated(images[order], [every[place] for place in order], density.taken(order))
