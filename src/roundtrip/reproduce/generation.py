"""New images of each class, sorted by their density (the paper's Fig. 3)."""

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
    """Generated images, sorted by class.

    Attributes
    ----------
    images : numpy.ndarray
        `(images, height, width, channels)` or channels first, as in `fit`.
    labels : list
        Class of each image.
    density : DensityEstimate
        Log density of each image given its class.
    """

    images: np.ndarray
    labels: list[Any]
    density: DensityEstimate

    def to_frame(self) -> pd.DataFrame:
        """Table with one row per image: its class, log density and standard error."""
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
    """Images E(x | z, y) of each class y for random z.

    Parameters
    ----------
    est : Roundtrip
        Model of images, fitted with ``context=labels``.
    per_class : int
        Number of images per class.
    labels : sequence, optional
        Classes; by default all classes of `fit`.
    sort : {"likelihood", "none"}, default="likelihood"
        Whether images of a class are sorted by decreasing density.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed of z.
    tol : float, optional
        Standard error of the log densities in nats; by default the model's `tol`.

    Returns
    -------
    Generated
        Images, labels and densities.
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
