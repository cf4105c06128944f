"""Recognition of rounded columns and of their rounding steps."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from roundtrip.data.rounding import ARITHMETIC, DOUBLE, Rounding, is_constant

MOST_DIVISIONS = 24
"""The smallest gap between the values of a grid may be this many steps."""

LARGEST_DEVIATION = 1e-4
"""Deviation from a grid, in steps, that is always allowed."""

LARGEST_INACCURACY = 0.03
"""A step must be so large that the inaccuracy of the values is at most this share of it."""

LARGEST_CHANCE = 1e-6
"""Probability with which continuous values may look rounded."""

OPERATIONS = 4
"""Values may have gone through this number of inexact operations, such as scaling."""

MULTIPLE_CHANCE = 0.01
"""Probability with which a few decimal numbers may have a larger common step than one unit."""

MOST_DECIMALS = 10
NEGLIGIBLE = 1e-3
"""Steps below this share of the interquartile range are negligible: noise is wider."""

SMALLEST_SHARE = 0.3
"""Smallest share of values on a grid for a column to count as partly rounded."""

COARSER = 10
"""A grid of a part of the values must have a step this many times that of all values."""

FEWEST_POINTS = 4
"""Smallest number of values of a partial grid, each weighted by its share of the rows."""

FEWEST_REPEATS = 5
"""Rows per distinct value from which values without a common step count as rounded."""

FEW_VALUES = 5
"""Up to this number of distinct values, three rows per value suffice."""

MOST_POINTS = 5000
"""Largest number of repeated values that a model file holds for a column."""

OCCUPIED, MANY_ROWS = 0.5, 5_000
"""Share of the places of a grid that must have values, in tables of so many rows; otherwise values
that are repeated often count as rounded one by one."""

SPIKE_SHARE, SPIKE_ROWS = 0.05, 10
"""Smallest share and number of rows of a spike: one repeated value among exact ones."""

NEARBY, WIDEST_SPIKE = 0.05, 0.1
"""Largest share of the exact values among which a spike is spread, and its largest width in
standard deviations."""


def column_resolution(X: np.ndarray) -> np.ndarray:
    """Return the rounding step of each column.

    Parameters
    ----------
    X : numpy.ndarray of shape (rows, features)
        The table.

    Returns
    -------
    numpy.ndarray
        `(features,)` steps, 0 for columns that are not rounded.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.stack([rng.normal(size=50), rng.integers(50, size=50) / 10], axis=1)
    >>> column_resolution(X)
    array([0. , 0.1])
    """
    return np.array([recognise(column).step for column in X.T])


def recognise(column: np.ndarray) -> Rounding:
    """Recognise how a column is rounded from its values.

    A column is rounded if its values lie on a grid: decimal numbers with few digits and multiples
    of such a number, or an arbitrary origin and step, as after standardisation. The step is the
    largest one of which all values are multiples. If such a step is absent or negligible, the
    values may be partly rounded (some on a grid, the others exact), or repeated many times without
    a common step. The step of a constant column is 1.

    Parameters
    ----------
    column : numpy.ndarray of shape (rows,)
        The values.

    Returns
    -------
    Rounding
        Step and evidence; the step is 0 if the column is not rounded.

    Examples
    --------
    >>> import numpy as np
    >>> rounding = recognise(np.array([4.9, 5.1, 5.0, 5.4, 4.9]))
    >>> rounding.step, str(rounding)
    (0.1, 'all 4 distinct values are multiples of 0.1')
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of columns near the end of float64
        return _recognise(column)


def _recognise(column: np.ndarray) -> Rounding:
    distinct = _Distinct.of(column)
    values, counts, rows = distinct.values, distinct.counts, len(column)
    low, high = float(column.min()), float(column.max())
    facts: dict[str, Any] = {"n_distinct": len(values), "low": low, "high": high}
    if is_constant(low, high):
        return Rounding(1.0, 1.0, **facts, origin=low)
    if len(values) == 1:  # all differences are arithmetic error
        return Rounding(0.0, 0.0, **facts)
    grid = _grid(values, distinct.error, rows)
    whole = grid is not None and grid.decimals == 0
    spread = np.subtract(*np.quantile(column, [0.75, 0.25])) or float(column.std())
    negligible = grid is None or grid.step < NEGLIGIBLE * spread
    if grid is not None and not whole and rows >= MANY_ROWS and _is_sparse(grid, distinct):
        points = _points(distinct)
        if points is not None and points.all():
            return _of_points(distinct, points, WIDEST_SPIKE * float(column.std()), facts)
    # Whole numbers are counts or codes even where their step is small.
    if negligible and not whole:
        facts["exact_decimals"] = None if grid is None else grid.decimals
        smallest = NEGLIGIBLE * spread if grid is None else COARSER * grid.step
        part = _grid_of_a_part(distinct, max(smallest, NEGLIGIBLE * spread))
        if part is not None:
            grid, on = part
            share = float(counts[on].sum() / rows)
            return grid.rounding(share, **facts).learned_near_share(values, counts)
        points = _points(distinct)
        if points is not None:
            return _of_points(distinct, points, WIDEST_SPIKE * float(column.std()), facts)
    if grid is None:
        return Rounding(0.0, 0.0, **facts)
    return grid.rounding(1.0, **facts)


@dataclass(frozen=True)
class _Distinct:
    """The distinct values of a column in ascending order, and how exact they are."""

    values: np.ndarray
    counts: np.ndarray
    error: float
    """Largest arithmetic error of a value."""

    @classmethod
    def of(cls, column: np.ndarray) -> "_Distinct":
        values, counts = np.unique(column, return_counts=True)
        size = np.abs(values)
        middle = np.subtract(*np.quantile(values, [0.75, 0.25]))
        # Values closer than arithmetic error are one value; the first stands for all of them.
        closest = 2 * DOUBLE * np.maximum(size[1:], size[:-1])
        closest = np.maximum(closest, ARITHMETIC * np.nan_to_num(middle, posinf=0.0))
        starts = np.flatnonzero(np.append(True, np.diff(values) > closest))
        error = OPERATIONS * _precision(values) * float(size.max())
        return cls(values[starts], np.add.reduceat(counts, starts), error)


def _precision(values: np.ndarray) -> float:
    """Return the relative precision of the values: that of float32 if they come from there.

    Whole numbers may have it by chance; like others with few decimals, they are exact.
    """
    single = (values.astype(np.float32) == values).all()
    error = OPERATIONS * DOUBLE * float(np.abs(values).max())
    if not single or _decimals(values, error) is not None:
        return DOUBLE
    return float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class _Grid:
    origin: float
    step: float
    tolerance: float
    decimals: int | None

    def near(self, values: np.ndarray) -> np.ndarray:
        steps = (values - self.origin) / self.step
        return np.abs(steps - np.rint(steps)) * self.step <= self.tolerance

    def rounding(self, share: float, **facts: Any) -> Rounding:
        return Rounding(share=share, **facts, **vars(self))


def _grid(values: np.ndarray, error: float, rows: int) -> _Grid | None:
    """Return the coarsest grid that all of the sorted, distinct values lie on."""
    decimal = None
    decimals = _decimals(values, error)
    if decimals is not None:
        decimal = _decimal_grid(values, error, decimals, rows)
        # Values of another grid may have been rounded; half as much again for the fitted grid.
        error = max(error, 0.75 * 10.0**-decimals)
        if decimal.step >= 0.999 * np.diff(values).min():
            return decimal  # no grid is coarser
    other = _regular_grid(values, error)
    if decimal is None:
        return other
    if other is not None and other.step >= COARSER * decimal.step:
        return replace(other, decimals=decimals)
    return decimal


def _has_decimals(values: np.ndarray, error: float, decimals: int) -> np.ndarray:
    return np.abs(np.round(values, decimals) - values) <= error


def _decimals(values: np.ndarray, error: float) -> int | None:
    """Return the number of decimal digits of the values, None if they have too many."""
    few = values[:: max(1, len(values) // 100)]
    for decimals in range(MOST_DECIMALS + 1):
        if not _decimals_are_evident(values, error, decimals):
            return None
        if all(_has_decimals(each, error, decimals).all() for each in (few, values)):
            return decimals
    return None


def _decimals_are_evident(values: np.ndarray, error: float, decimals: int) -> bool:
    """Whether continuous values would not have this number of decimals by chance."""
    chance = 2 * error * 10.0**decimals
    return chance <= LARGEST_INACCURACY and chance ** len(values) <= LARGEST_CHANCE


def _decimal_grid(values: np.ndarray, error: float, decimals: int, rows: int) -> _Grid:
    """Return the grid of values with this number of decimals."""
    unit = 10.0**decimals
    whole = np.rint(values * unit).astype(np.int64)
    steps = int(np.gcd.reduce(np.diff(whole)))
    # A few different values, such as 3, 7 and 11, have a common step of several units by chance.
    if float(steps) ** (2 - len(values)) > MULTIPLE_CHANCE and rows < 3 * len(values):
        steps = 1
    # The smallest value on the grid that is at least 0, so that the grid looks as it would be told.
    origin = int(whole[0] % steps)
    return _Grid(origin / unit, steps / unit, max(error, ARITHMETIC * steps / unit), decimals)


def _regular_grid(values: np.ndarray, error: float) -> _Grid | None:
    """Return the coarsest grid with arbitrary origin and step that all values lie on."""
    gaps = np.sort(np.diff(values))
    for divisions in range(1, MOST_DIVISIONS + 1):
        step = gaps[0] / divisions
        deviation = max(LARGEST_DEVIATION, error / step)
        if deviation > LARGEST_INACCURACY:
            return None
        # Origin and step fit two values, and the number of steps between distant ones a third.
        if MOST_DIVISIONS * (2 * deviation) ** (len(values) - 3) > LARGEST_CHANCE:
            return None
        ratios = gaps[:16] / step  # most wrong steps fail here; this one is not precise yet
        if (np.abs(ratios - np.rint(ratios)) > 2 * deviation * (1 + ratios)).any():
            continue
        # Small gaps make the step precise enough to count the steps of larger gaps.
        for most in (30, 1e3, np.inf):
            small = gaps[gaps <= most * step]
            step = small.sum() / np.rint(small / step).sum()
        steps = np.cumsum(np.append(0, np.rint(np.diff(values) / step)))
        centred, middle = steps - steps.mean(), values.mean()
        step = float(centred @ (values - middle) / (centred @ centred))
        origin = float(middle - step * steps.mean())
        if np.abs(origin + step * steps - values).max() <= deviation * step:
            return _Grid(origin, step, deviation * step, None)
    return None


def _grid_of_a_part(distinct: _Distinct, smallest: float) -> tuple[_Grid, np.ndarray] | None:
    """Return the grid that a large part of the values lie on, and which of them."""
    values, counts, error = distinct.values, distinct.counts, distinct.error
    rows = counts.sum()

    def is_large(on: np.ndarray) -> bool:
        among = counts[on]
        evenly = among.sum() ** 2 >= FEWEST_POINTS * (among**2).sum()  # not only a few spikes
        return bool(evenly and among.sum() >= SMALLEST_SHARE * rows)

    for decimals in range(MOST_DECIMALS + 1):
        if not _decimals_are_evident(values, error, decimals):
            break
        on = _has_decimals(values, error, decimals)
        if is_large(on):
            grid = _decimal_grid(values[on], error, decimals, int(counts[on].sum()))
            return (grid, on) if grid.step > smallest else None
    for fewest in (2, 5):  # exact values are rarely repeated
        repeated = values[counts >= fewest]
        regular = _regular_grid(repeated, error) if len(repeated) > 1 else None
        if regular is not None and regular.step > smallest:
            on = regular.near(values)
            if is_large(on):
                return regular, on
    return None


def _points(distinct: _Distinct) -> np.ndarray | None:
    """Return which of the values are repeated so often that they count as rounded."""
    counts, rows = distinct.counts, int(distinct.counts.sum())
    number = len(counts)
    spikes = counts >= max(SPIKE_ROWS, SPIKE_SHARE * rows)
    repeats = 3 if number <= FEW_VALUES else FEWEST_REPEATS
    # Among many values, a spike must not pass for repetitions of all others.
    others = ~spikes if number > FEW_VALUES else np.ones(number, dtype=bool)
    if number <= MOST_POINTS and others.sum() * repeats <= counts[others].sum():
        return np.ones(number, dtype=bool)
    return spikes if 0 < spikes.sum() <= MOST_POINTS else None


def _is_sparse(grid: _Grid, distinct: _Distinct) -> bool:
    """Whether most places of a grid have no value, as if a few odd values had made it finer."""
    places = (distinct.values[-1] - distinct.values[0]) / grid.step + 1
    return bool(len(distinct.values) < OCCUPIED * places)


def _of_points(
    distinct: _Distinct, often: np.ndarray, widest: float, facts: dict[str, Any]
) -> Rounding:
    """Return the rounding of repeated values, each with a width of its own."""
    values, counts = distinct.values, distinct.counts
    points = values[often]
    gaps = np.diff(points, prepend=-np.inf, append=np.inf)
    widths = np.minimum(gaps[1:], gaps[:-1])
    if not often.all():
        # Spread so far that only few of the exact values lie there.
        exact = np.abs(values[~often, None] - points).min(axis=1)
        widths = np.minimum(widths, min(widest, 2 * np.quantile(exact, NEARBY)))
    rounding = Rounding(
        step=float(widths.min()),
        share=float(counts[often].sum() / counts.sum()),
        tolerance=float(np.diff(values).min()) / 4,
        points=tuple(map(float, points)),
        widths=tuple(map(float, widths)),
        **facts,
    )
    return rounding.learned_near_share(values, counts)
