"""Marginals of pairs of columns, as contours over the rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roundtrip.data.kinds import CategoryColumn, Column
from roundtrip.data.rounding import Rounding
from roundtrip.density.pair_marginals import ColumnMasses, column_masses
from roundtrip.estimator import Roundtrip
from roundtrip.plots.axes import label_axis, short
from roundtrip.plots.figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COLUMNS, MOST_LEVELS, MOST_POINTS = 5, 8, 1000

SHARES = (0.95, 0.8, 0.5)
"""Probabilities of the regions that contours enclose."""

SIDE = 1.9
"""Inches of a panel."""

COLOUR, POINTS, CMAP = "tab:blue", "tab:orange", "Blues"


def pair_marginals(est: Roundtrip, data: Any, columns: Sequence[Any] | None = None) -> "Figure":
    """Plot the model's marginals of columns and of pairs of columns, over the rows of a table.

    On the diagonal, the marginal density of a column over the histogram of its values, or
    probabilities of levels over their frequencies. Below, for two numbers, the smallest regions
    with 95, 80 and 50 % of the probability (smoothed by the width of a bin) behind points; for a
    number and a category, the density of the number given each level; for two categories,
    probabilities in per cent. Rows are not scored: everything is an average over 16,384 draws of z.

    Parameters
    ----------
    est : Roundtrip
        Density of a table, fitted without a context.
    data : array-like or DataFrame
        Rows like those of `fit`; their range is drawn, and up to 1,000 of them.
    columns : sequence or None, default=None
        Labels of the columns, or their numbers in an array, at least two; None for all, or the
        first five of more.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> est = Roundtrip(max_epochs=1, random_state=0).fit(X)
    >>> len(pair_marginals(est, X, columns=[0, 2]).axes)
    3
    """
    est._check_table("pair_marginals")
    schema = est.schema_
    known = list(schema.described())
    labels = known[:MOST_COLUMNS] if columns is None else list(columns)
    unknown = [label for label in labels if label not in known]
    if unknown or not 2 <= len(set(labels)) == len(labels):
        raise ValueError(f"columns must name at least two of {known}, got {columns!r}")
    values = schema.checked_values(est, data, empty_rows=True)
    places = [known.index(label) for label in labels]
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(values))[:MOST_POINTS]
    found = [
        _Column(label, schema.kinds[each.place], schema.rounding[each.place], each, values, rows)
        for label, each in zip(labels, column_masses(est.fitted_, values, places), strict=True)
    ]
    size = SIDE * len(labels) + 0.7
    figure = new_figure((size, size))
    axes = figure.subplots(len(labels), len(labels), squeeze=False)
    for i, below in enumerate(found):
        for j, left in enumerate(found):
            ax = axes[i, j]
            if j > i:
                ax.remove()
                continue
            (_draw_one if i == j else _draw_pair)(ax, left, below)
            left.dress(ax, "x", outer=i == len(found) - 1)
            if i != j or i == 0:
                below.dress(ax, "y", outer=j == 0, only_label=i == j)
            ax.tick_params(labelsize=7)
    return figure


@dataclass(frozen=True)
class _Column:
    """A column of the picture."""

    label: Any
    kind: Column
    rounding: Rounding
    masses: ColumnMasses
    table: np.ndarray
    rows: np.ndarray

    @property
    def is_category(self) -> bool:
        return isinstance(self.kind, CategoryColumn)

    @property
    def levels(self) -> list[Any]:
        """The levels in their order, or the most frequent ones."""
        assert isinstance(self.kind, CategoryColumn)
        return list(self.kind.levels[:MOST_LEVELS])

    @property
    def values(self) -> np.ndarray:
        return self.table[:, self.masses.place]

    @property
    def centres(self) -> np.ndarray:
        assert self.masses.edges is not None
        return (self.masses.edges[1:] + self.masses.edges[:-1]) / 2

    def points(self) -> np.ndarray:
        """Return the values of some rows, spread over their rounding steps or around levels."""
        step = 0.6 if self.is_category else self.rounding.step
        if not (self.is_category or self.rounding.complete):
            step = 0.0
        rng = np.random.default_rng(self.masses.place)
        return self.values[self.rows] + step * (rng.random(len(self.rows)) - 0.5)

    def dress(self, ax: "Axes", side: str, *, outer: bool, only_label: bool = False) -> None:
        """Set limits and labels of an axis of this column."""
        axis = ax.xaxis if side == "x" else ax.yaxis
        if only_label:
            axis.set_label_text(str(self.label))
            axis.set_ticks([])
            return
        ends = ax.set_xlim if side == "x" else ax.set_ylim
        if self.is_category:
            names = [short(level) for level in self.levels]
            axis.set_ticks(range(len(names)), names if outer else [""] * len(names))
            ends(-0.5, len(names) - 0.5)
            if outer and side == "x":
                for tick in axis.get_ticklabels():
                    tick.set(rotation=45, ha="right", rotation_mode="anchor")
            hidden = len(self.kind.levels) - len(names)  # type: ignore[attr-defined]
            more = f"\n(and {hidden} more levels)" if hidden else ""
            axis.set_label_text(f"{self.label}{more}" if outer else "")
            return
        assert self.masses.edges is not None
        ends(self.masses.edges[0], self.masses.edges[-1])
        if outer:
            label_axis(axis, self.label, self.kind)
            if side == "x":
                for tick in axis.get_ticklabels():
                    tick.set(rotation=45, ha="right", rotation_mode="anchor")
        else:
            axis.set_tick_params(labelbottom=False, labelleft=False)


def _draw_one(ax: "Axes", column: _Column, _: _Column) -> None:
    """Draw a marginal over the values."""
    known = column.values[~np.isnan(column.values)]
    masses, edges = column.masses.masses, column.masses.edges
    if edges is None:
        count = len(column.levels)
        shares = np.bincount(known.astype(int), minlength=count + 1)[:count] / len(known)
        ax.bar(range(count), shares, color=POINTS, alpha=0.4, width=0.8)
        ax.plot(range(count), masses[:count], "o", color=COLOUR, ms=4)
    else:
        widths = np.diff(edges)
        shares = np.histogram(known, edges)[0] / len(known)
        ax.stairs(shares / widths, edges, fill=True, color=POINTS, alpha=0.4)
        ax.stairs(masses / widths, edges, color=COLOUR, lw=1.3, baseline=None)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])


def _draw_pair(ax: "Axes", left: _Column, below: _Column) -> None:
    """Draw the marginal of a pair: `left` along x, `below` along y."""
    p = below.masses.with_other(left.masses)
    if left.is_category and below.is_category:
        shown = p[: len(below.levels), : len(left.levels)]
        ax.imshow(np.sqrt(shown), cmap=CMAP, vmin=0, aspect="auto", origin="lower")
        _write_shares(ax, shown)
    elif left.is_category:
        _draw_ridges(ax, left, below, p.T, upright=True)
    elif below.is_category:
        _draw_ridges(ax, below, left, p, upright=False)
    else:
        _draw_contours(ax, left, below, p)


def _draw_contours(ax: "Axes", left: _Column, below: _Column, p: np.ndarray) -> None:
    """Draw regions of numbers, over points; bins are smoothed by one bin's width."""
    from scipy.ndimage import gaussian_filter

    own, other = below.masses.edges, left.masses.edges
    assert own is not None
    assert other is not None
    density = gaussian_filter(p / np.outer(np.diff(own), np.diff(other)), 1.0, mode="nearest")
    heights = _heights(p, density)
    x, y = left.centres, below.centres
    if len(heights) > 0:
        shades = [*heights, max(density.max(), heights[-1]) * 1.01]
        ax.contourf(x, y, density, shades, cmap=CMAP, vmin=-heights[-1], alpha=0.8)
        ax.contour(x, y, density, heights, colors=COLOUR, linewidths=0.6)
    ax.plot(left.points(), below.points(), ".", color=POINTS, ms=3, alpha=0.6, mew=0)


def _heights(p: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Return the densities at the borders of the smallest regions with certain probabilities."""
    order = np.argsort(-density, axis=None)
    inside = p.ravel()[order].cumsum()
    places = np.searchsorted(inside, np.array(SHARES) * inside[-1]).clip(max=len(order) - 1)
    return np.unique(density.ravel()[order][places])


def _draw_ridges(
    ax: "Axes", levels: _Column, numbers: _Column, p: np.ndarray, *, upright: bool
) -> None:
    """Draw the density of numbers given each level, over points; `p` is `(levels, bins)`."""
    edges = numbers.masses.edges
    assert edges is not None
    spots, places = numbers.points(), levels.points()
    first, second = (places, spots) if upright else (spots, places)
    ax.plot(first, second, ".", color=POINTS, ms=2.5, alpha=0.5, mew=0)
    for place in range(len(levels.levels)):
        given = p[place] / np.diff(edges)
        heights = 0.4 * given / max(given.max(), np.finfo(float).tiny)
        for baseline, top in ((place, place + heights), (place, place - heights)):
            ax.stairs(
                top,
                edges,
                baseline=baseline,
                fill=True,
                color=COLOUR,
                alpha=0.35,
                orientation="horizontal" if upright else "vertical",
            )


def _write_shares(ax: "Axes", p: np.ndarray) -> None:
    if p.size > 30:
        return
    strongest = np.sqrt(p.max())
    for (row, column), share in np.ndenumerate(p):
        dark = np.sqrt(share) > 0.6 * strongest
        colour = "white" if dark else "black"
        text = f"{100 * share:.0f}"
        ax.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)
