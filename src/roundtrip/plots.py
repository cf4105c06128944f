"""Pictures of results; nothing is computed here. Needs the `plots` extra (matplotlib)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def density_panels(
    densities: Mapping[str, np.ndarray],
    extent: Sequence[float],
    *,
    axis_labels: tuple[str, str] = ("x₁", "x₂"),
) -> "Figure":
    """Two-dimensional densities side by side on one colour scale.

    Parameters
    ----------
    densities : title → density on a regular grid, `(rows along y, columns along x)`.
    extent : (left, right, bottom, top) of the grid.

    The first panel sets the colour scale: it should be the truth, if that is known.

    >>> import numpy as np
    >>> figure = density_panels({"truth": np.eye(3), "estimate": np.eye(3)}, (0, 1, 0, 1))
    >>> len(figure.axes)  # two panels and a colour bar
    3
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'roundtrip[plots]'") from error

    figure = Figure(figsize=(4 * len(densities) + 0.8, 4.2), layout="constrained")
    axes = figure.subplots(1, len(densities), sharex=True, sharey=True, squeeze=False)[0]
    top = max(float(next(iter(densities.values())).max()), np.finfo(float).tiny)
    for ax, (title, density) in zip(axes, densities.items(), strict=True):
        image = ax.imshow(
            density,
            extent=tuple(extent),
            origin="lower",
            vmin=0,
            vmax=top,
            cmap="viridis",
            interpolation="bilinear",
        )
        ax.set_title(title)
        ax.set_xlabel(axis_labels[0])
    axes[0].set_ylabel(axis_labels[1])
    figure.colorbar(image, ax=axes, label="density", shrink=0.85, extend="max")
    return figure
