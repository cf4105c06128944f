"""Pictures of results; nothing is computed here. Needs the `plots` extra (matplotlib)."""

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
    """Columns of density panels, each column on the colour scale of its first panel.

    Parameters
    ----------
    panels : column → row → density on a regular grid, `(cells, cells)`; the first row should be the
        truth.
    reach : column → its panels show the square from -reach to reach.

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
            pad=0.04 / len(rows),  # of all rows together
        )
    return figure


def image_grid(images: np.ndarray, captions: Sequence[str], row_labels: Sequence[str]) -> "Figure":
    """Rows of images with a small caption below each.

    Parameters
    ----------
    images : `(rows * columns, height, width, channels)`, bytes or numbers from 0 to 1, row by row.
    captions : one an image.
    row_labels : one a row.

    >>> import numpy as np
    >>> figure = image_grid(np.zeros((4, 8, 8, 1)), ["a"] * 4, ["first", "second"])
    >>> len(figure.axes)
    4
    """
    columns = len(images) // len(row_labels)
    figure = _figure(figsize=(0.55 * columns + 0.5, 0.66 * len(row_labels) + 0.2))
    axes = figure.subplots(len(row_labels), columns, squeeze=False)
    for ax, image, caption in zip(axes.flat, images, captions, strict=True):
        # What is generated may lie a little beyond; the type says what is white.
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
    """Values with their error bars, one panel each, names down the side.

    Parameters
    ----------
    panels : panel → name → (value, half the length of its bar), drawn filled.
    compared : the same for other values of the same names, drawn hollow; names may be missing.

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
    """Curves with a legend; each is x → y, the one named `strong` in bold black.

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
        raise ImportError("pictures need matplotlib: pip install 'roundtrip[plots]'") from error
    return Figure(figsize=figsize, layout="constrained")
