"""Grids of images."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from roundtrip.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def image_grid(images: np.ndarray, captions: Sequence[str], row_labels: Sequence[str]) -> "Figure":
    """Plot rows of images with a small caption below each image.

    Parameters
    ----------
    images : numpy.ndarray
        `(rows * columns, height, width, channels)` bytes or numbers from 0 to 1, row by row.
    captions : sequence of str
        One per image.
    row_labels : sequence of str
        One per row of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> figure = image_grid(np.zeros((4, 8, 8, 1)), ["a"] * 4, ["first", "second"])
    >>> len(figure.axes)
    4
    """
    columns = len(images) // len(row_labels)
    figure = new_figure(figsize=(0.55 * columns + 0.5, 0.66 * len(row_labels) + 0.2))
    axes = figure.subplots(len(row_labels), columns, squeeze=False)
    for ax, image, caption in zip(axes.flat, images, captions, strict=True):
        # Generated values may lie slightly outside the range, which the type determines.
        shown = np.clip(image, 0, _white(image)).astype(image.dtype)
        grey = image.shape[-1] == 1
        ax.imshow(shown[..., 0] if grey else shown, cmap="gray", vmin=0, vmax=_white(image))
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(caption, fontsize=5, labelpad=1)
    for ax, label in zip(axes[:, 0], row_labels, strict=True):
        ax.set_ylabel(label, fontsize=8, rotation=0, ha="right", va="center")
    return figure


def _white(image: np.ndarray) -> float:
    return 255.0 if image.dtype == np.uint8 else 1.0
