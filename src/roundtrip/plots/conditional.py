"""The distribution of one column given the rest of a row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from roundtrip.data.bins import bin_edges
from roundtrip.data.kinds import CategoryColumn
from roundtrip.data.times import TimeColumn
from roundtrip.density.conditional import Conditional
from roundtrip.parameters import check_integer
from roundtrip.plots.axes import label_axis
from roundtrip.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BINS, FEW_BINS = 200, 40
"""Bins of a curve, and up to how many are bars."""

MOST_LEVELS = 12

LABEL_WIDTH = 0.25
"""Share of the width of a picture that the label of a quantile takes."""

ENDS = (0.002, 0.998)
"""Quantiles between which a density is drawn."""

COLOUR, QUANTILE_COLOUR = "tab:blue", "tab:orange"


def conditional(
    p: Conditional,
    row: int = 0,
    *,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    ax: "Axes | None" = None,
) -> "Figure":
    """Plot the conditional density of one row, or the probabilities of levels.

    Bands and bars are two standard errors, which the finite number of draws leaves, wide on each
    side.

    Parameters
    ----------
    p : Conditional
        What ``est.conditional(X, column)`` returns.
    row : int, default=0
        Number of the row.
    quantiles : sequence of float, default=(0.05, 0.5, 0.95)
        Quantiles of numbers and dates to mark.
    ax : matplotlib.axes.Axes or None, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from roundtrip import Roundtrip
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[::5, 1] = np.nan
    >>> est = Roundtrip(max_epochs=1, random_state=0).fit(X)
    >>> figure = conditional(est.conditional(X[:3], 1), row=2)
    >>> figure.axes[0].get_xlabel()
    '1'
    """
    row = check_integer("row", row, minimum=0)
    if row >= len(p):
        raise ValueError(f"row must be a number below {len(p)}, got {row}")
    one = p.taken(row)
    if ax is None:
        ax = new_figure((5.6, 3.4)).subplots()
    if isinstance(one.units.column, CategoryColumn):
        _draw_levels(ax, one)
    else:
        _draw_density(ax, one, quantiles)
    ax.set_title(f"{one.label} given the rest of row {one.index[0]}", fontsize=10)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def _draw_levels(ax: "Axes", p: Conditional) -> None:
    frames = p.probabilities(with_error=True)
    values, errors = (frame.to_numpy()[0] for frame in frames)
    names = [str(level) for level in frames[0].columns]
    column = p.units.column
    assert isinstance(column, CategoryColumn)
    order = np.arange(len(names)) if column.ordered else np.argsort(-values, kind="stable")
    shown, rest = order[:MOST_LEVELS], order[MOST_LEVELS:]
    if column.ordered and len(rest):  # which are not the least likely ones
        shown, rest = order, order[:0]
    places = np.arange(len(shown))
    bars = {"ecolor": "gray", "capsize": 2}
    ax.barh(places, values[shown], xerr=2 * errors[shown], color=COLOUR, error_kw=bars)
    names = [names[place] for place in shown]
    if len(rest):
        ax.barh(len(shown), values[rest].sum(), color=COLOUR, alpha=0.4)
        names.append(f"{len(rest)} other levels")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("probability")
    ax.grid(axis="x", alpha=0.3)


def _draw_density(ax: "Axes", p: Conditional, quantiles: Sequence[float]) -> None:
    units = p.units
    low, high = (units.column.encoded(p.quantile(level))[0] for level in ENDS)
    margin = 0 if units.rounding.step else 0.02 * (high - low)
    edges = bin_edges(units.rounding, low - margin, high + margin, MOST_BINS)
    x = torch.from_numpy(units.scaled(edges)[None]).to(p.law.codes.weights)
    masses, errors = (values[0].cpu().numpy() for values in p.law.masses(x))
    few = units.rounding.complete and len(masses) <= FEW_BINS
    widths = np.diff(edges)
    one_step = units.rounding.complete and np.allclose(widths, units.rounding.step)
    unit = 1.0 if one_step else widths
    heights, bands = masses / unit, 2 * errors / unit
    if few:
        ax.stairs(heights, edges, fill=True, color=COLOUR, alpha=0.6)
        centres = (edges[1:] + edges[:-1]) / 2
        ax.errorbar(centres, heights, yerr=bands, fmt="none", ecolor="gray", capsize=2)
    else:
        below, above = np.maximum(heights - bands, 0), heights + bands
        ax.stairs(above, edges, baseline=below, fill=True, color=COLOUR, alpha=0.35, lw=0)
        ax.stairs(heights, edges, baseline=None, color=COLOUR, lw=1.5)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(0, 1.3 * float((heights + bands).max()))
    _mark_quantiles(ax, p, quantiles)
    ax.set_ylabel("probability" if one_step else "density")
    label_axis(ax.xaxis, p.label, units.column)
    if isinstance(units.column, TimeColumn) and not one_step:
        ax.set_ylabel("density per day")


def _mark_quantiles(ax: "Axes", p: Conditional, quantiles: Sequence[float]) -> None:
    """Draw lines at quantiles; one label for equal ones, and lower labels where they are close."""
    column = p.units.column
    labels: dict[float, list[str]] = {}
    texts = {}
    for level in quantiles:
        value = p.quantile(level)
        place = float(column.encoded(value)[0])
        labels.setdefault(place, []).append(f"{100 * level:g} %")
        texts[place] = _shown(value.iloc[0])
    low, high = ax.get_xlim()
    last, line = -np.inf, 0
    for place in sorted(labels):
        ax.axvline(place, color=QUANTILE_COLOUR, lw=1.2, ls="--")
        share = (place - low) / (high - low)
        line = (line + 1) % 3 if share - last < LABEL_WIDTH else 0
        last = share
        at_end = share > 1 - LABEL_WIDTH
        ax.text(
            place,
            0.98 - 0.07 * line,
            f" {', '.join(labels[place])}: {texts[place]} ",
            transform=ax.get_xaxis_transform(),
            color=QUANTILE_COLOUR,
            fontsize=8,
            va="top",
            ha="right" if at_end else "left",
        )


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).removesuffix(" 00:00:00")
