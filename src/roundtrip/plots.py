"""Figures of results. Needs matplotlib: ``pip install 'roundtrip[plots]'``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

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
    figure = _figure(figsize=(4 * len(densities) + 0.8, 4.2))
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
    figure = _figure(figsize=(2.1 * len(panels) + 0.4, 1.75 * len(rows) + 0.6))
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
    figure = _figure(figsize=(0.55 * columns + 0.5, 0.66 * len(row_labels) + 0.2))
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


def interval_panels(
    panels: Mapping[str, Mapping[str, tuple[float, float]]],
    compared: Mapping[str, Mapping[str, tuple[float, float]]],
    *,
    label: str,
    compared_label: str,
    x_label: str,
) -> "Figure":
    """Plot values with error bars in panels side by side; names are on the vertical axis.

    Parameters
    ----------
    panels : mapping
        By panel and name: the value and half the length of its error bar. Drawn filled.
    compared : mapping
        Values to compare with, in the same form. Drawn hollow. Panels and names may be missing.
    label : str
        Label of `panels` in the legend.
    compared_label : str
        Label of `compared` in the legend.
    x_label : str
        Label of the horizontal axes.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> figure = interval_panels({"A": {"KDE": (1.0, 0.1)}}, {}, label="ours",
    ...     compared_label="theirs", x_label="nats")
    >>> len(figure.axes)
    1
    """
    names = list(next(iter(panels.values())))
    figure = _figure(figsize=(2.2 * len(panels) + 1.6, 0.32 * len(names) + 1.3))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (panel, values) in zip(axes, panels.items(), strict=True):
        for points, style, name in (
            (compared.get(panel, {}), {"mfc": "none", "color": "tab:orange"}, compared_label),
            (values, {"color": "tab:blue"}, label),
        ):
            places = [names.index(each) for each in points]
            centres, bars = np.array(list(points.values())).reshape(-1, 2).T
            ax.errorbar(centres, places, xerr=bars, fmt="o", markersize=5, label=name, **style)
        ax.set_title(panel)
        ax.set_xlabel(x_label)
        ax.grid(alpha=0.3)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    handles, labels = axes[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


LINE_STYLES = ("-", "--", "-.", ":")
BOLD: dict[str, Any] = {"color": "black", "linewidth": 2.5}


def lines(
    curves: Mapping[str, Mapping[float, float]],
    *,
    x_label: str,
    y_label: str,
    markers: bool = True,
    strong: str | None = None,
) -> "Figure":
    """Plot curves with a legend.

    Parameters
    ----------
    curves : mapping
        By name: a mapping from x to y.
    x_label : str
        Label of the horizontal axis.
    y_label : str
        Label of the vertical axis.
    markers : bool, default=True
        Whether to mark the points.
    strong : str or None, default=None
        Name of the curve to draw in bold black.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> figure = lines({"KDE": {2: 0.9, 3: 0.8}}, x_label="dimension", y_label="correlation")
    >>> len(figure.axes[0].lines)
    1
    """
    figure = _figure(figsize=(6.4, 4))
    ax = figure.subplots()
    for number, (name, points) in enumerate(curves.items()):
        ax.plot(
            list(points),
            list(points.values()),
            label=name,
            marker="o" if markers else None,
            markersize=4,
            **(BOLD if name == strong else {"linestyle": LINE_STYLES[number % len(LINE_STYLES)]}),
        )
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(alpha=0.3)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8, frameon=False)
    return figure


def _figure(figsize: tuple[float, float]) -> "Figure":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'roundtrip[plots]'") from error
    return Figure(figsize=figsize, layout="constrained")
