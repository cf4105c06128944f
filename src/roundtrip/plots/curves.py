"""Curves, and values with error bars in panels."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from roundtrip.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    figure = new_figure(figsize=(2.2 * len(panels) + 1.6, 0.32 * len(names) + 1.3))
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
    figure = new_figure(figsize=(6.4, 4))
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
