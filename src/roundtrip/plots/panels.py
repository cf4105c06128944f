"""Two-dimensional densities side by side."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from roundtrip.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def density_panels(
    densities: Mapping[str, np.ndarray],
    extent: Sequence[float],
    *,
    axis_labels: tuple[str, str] = ("x₁", "x₂"),
) -> "Figure":
    """Plot two-dimensional densities side by side on one colour scale.

    Parameters
    ----------
    densities : mapping
        Density on a regular grid, `(rows along y, columns along x)`, by title. The first one sets
        the colour scale, so it should be the truth, if that is known.
    extent : sequence of float
        Left, right, bottom and top of the grid.
    axis_labels : tuple of str, default=("x₁", "x₂")
        Labels of the horizontal and vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> figure = density_panels({"truth": np.eye(3), "estimate": np.eye(3)}, (0, 1, 0, 1))
    >>> len(figure.axes)  # two panels and a colour bar
    3
    """
    figure = new_figure(figsize=(4 * len(densities) + 0.8, 4.2))
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


def density_grid(
    panels: Mapping[str, Mapping[str, np.ndarray]], reach: Mapping[str, float]
) -> "Figure":
    """Plot a grid of density panels; the first panel of a column sets its colour scale.

    Parameters
    ----------
    panels : mapping
        Density on a regular grid, `(cells, cells)`, by column and row. The first row should be the
        truth.
    reach : mapping
        By column: its panels show the square from -reach to reach.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> figure = density_grid({"a": {"truth": np.eye(3), "KDE": np.eye(3)}}, {"a": 1.0})
    >>> len(figure.axes)  # two panels and a colour bar
    3
    """
    rows = list(next(iter(panels.values())))
    figure = new_figure(figsize=(2.1 * len(panels) + 0.4, 1.75 * len(rows) + 0.6))
    axes = figure.subplots(len(rows), len(panels), squeeze=False)
    for place, (name, densities) in enumerate(panels.items()):
        top = max(float(next(iter(densities.values())).max()), np.finfo(float).tiny)
        extent = (-reach[name], reach[name], -reach[name], reach[name])
        for ax, (method, density) in zip(axes[:, place], densities.items(), strict=True):
            image = ax.imshow(
                density, extent=extent, origin="lower", vmin=0, vmax=top, cmap="viridis"
            )
            ax.tick_params(labelbottom=ax is axes[-1, place])
            if place == 0:
                ax.set_ylabel(f"{method}\nx₂")
        axes[0, place].set_title(name)
        axes[-1, place].set_xlabel("x₁")
        figure.colorbar(
            image,
            ax=axes[:, place],
            location="bottom",
            label="density",
            extend="max",
            aspect=12,
            pad=0.04 / len(rows),  # a share of the height of all rows together
        )
    return figure
