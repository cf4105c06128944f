"""`Rounding`: how the values of a column are rounded, with the evidence."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

ARITHMETIC = 1e-9
"""Differences up to this share of a step, or of the spread of a column, are arithmetic error."""

DOUBLE = float(np.finfo(np.float64).eps)

SHOWN = 200
"""Largest length of a message about the rounding of a column."""


@dataclass(frozen=True)
class Rounding:
    """The rounding of one column.

    The rounded values either lie on a grid, `origin` plus multiples of `step`, or are the repeated
    values `points`, which have no common step. All values may be rounded, or only a `share`; the
    others are exact.

    Attributes
    ----------
    step : float
        Distance of the grid, or smallest width of `points`; 0 if the column is not rounded.
    share : float
        Share of the values that are rounded.
    n_distinct : int
        Number of distinct values.
    low, high : float
        Smallest and largest value.
    origin : float, default=0.0
        A value on the grid.
    decimals : int or None, default=None
        Decimal digits of the values on the grid; None if they are not decimal numbers.
    tolerance : float, default=0.0
        Largest distance between a rounded value and the grid or its point.
    points, widths : tuple of float, default=()
        Repeated values in ascending order, and the width over which fitting spreads each.
    near_share : float, default=1.0
        Share of rounded values among those that lie where fitting spreads rounded values.
    exact_decimals : int or None, default=None
        Decimal digits of the exact values; None if they have too many.

    Examples
    --------
    >>> import numpy as np
    >>> rounding = Rounding(0.1, 1.0, 4, low=4.9, high=5.5, decimals=1)
    >>> rounding.rounded(np.array([5.117, 9.0]), np.random.RandomState(0))
    array([5.1, 5.5])
    >>> print(rounding)
    all 4 distinct values are multiples of 0.1
    """

    step: float
    share: float
    n_distinct: int
    low: float
    high: float
    origin: float = 0.0
    decimals: int | None = None
    tolerance: float = 0.0
    points: tuple[float, ...] = ()
    widths: tuple[float, ...] = ()
    near_share: float = 1.0
    exact_decimals: int | None = None

    def check(self) -> None:
        """Raise `ValueError` for a rounding that no column has."""
        numbers = [self.step, self.share, self.origin, self.tolerance, self.near_share]
        numbers += [self.low, self.high, *self.points, *self.widths]
        ordered = self.low <= self.high and list(self.points) == sorted(self.points)
        whole = all(each is None or type(each) is int for each in (self.decimals, self.n_distinct))
        positive = min(self.step, self.share, self.tolerance, *self.widths) >= 0
        matching = self.share <= 1 and len(self.points) == len(self.widths)
        if not (np.isfinite(numbers).all() and ordered and whole and positive and matching):
            raise ValueError(f"a column is rounded in no possible way: {self!r}"[:SHOWN])

    @property
    def complete(self) -> bool:
        """Whether all values lie on one grid, so that all are spread over the same width."""
        return self.step > 0 and self.share == 1 and not self.points

    def nearest(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rounded value nearest to each value, and the width over which it is spread."""
        if self.points:
            points = np.array(self.points)
            middles = (points[1:] + points[:-1]) / 2
            place = np.searchsorted(middles, values)
            return points[place], np.array(self.widths)[place]
        nearest = self.origin + np.rint((values - self.origin) / self.step) * self.step
        if self.decimals is not None:  # 0.3 instead of 0.30000000000000004
            nearest = np.round(nearest, self.decimals)
        return nearest, np.full(len(values), self.step)

    def spread_widths(self, values: np.ndarray) -> np.ndarray:
        """Return the width over which fitting spreads each value, 0 for exact values.

        Parameters
        ----------
        values : numpy.ndarray of shape (rows,)
            Values of the column.

        Returns
        -------
        numpy.ndarray
            `(rows,)`.
        """
        if self.step == 0:
            return np.zeros(len(values))
        nearest, widths = self.nearest(values)
        if self.complete:  # new values off the grid are rounded like the others
            return widths
        return np.where(np.abs(values - nearest) <= self.tolerance, widths, 0.0)

    def rounded(self, values: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Round generated values so that they look like those of fit.

        Values beyond the range of fit become its ends. If all values of fit were rounded, each
        value becomes the nearest rounded value. If only a share was, a value that lies where
        fitting spreads rounded values becomes the nearest rounded value with probability
        `near_share`; other values stay exact, up to the decimal digits of fit.

        Parameters
        ----------
        values : numpy.ndarray of shape (rows,)
            Generated values.
        rng : numpy.random.RandomState
            Decides which values of a partly rounded column are rounded.

        Returns
        -------
        numpy.ndarray
            `(rows,)`.
        """
        if self.step == 0:
            return values
        missing = np.isnan(values)
        values = np.clip(values, self.low, self.high)
        if self.share == 1:
            return np.where(missing, np.nan, self.nearest(values)[0])
        nearest, widths = self.nearest(values)
        near = np.abs(values - nearest) <= widths / 2
        near &= (nearest >= self.low - self.tolerance) & (nearest <= self.high + self.tolerance)
        chosen = rng.random_sample(len(values)) < self.near_share
        exact = values if self.exact_decimals is None else np.round(values, self.exact_decimals)
        return np.where(near & chosen, nearest, exact)

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Return which generated values no rounded value of fit stands for, `(rows,)`.

        They lie more than half a step, or half the width of the nearest repeated value, beyond the
        range of fit.
        """
        if self.step == 0:
            return np.zeros(len(values), dtype=bool)
        ends = np.array([self.low, self.high])
        below, above = self.nearest(ends)[1] / 2
        return (values < self.low - below) | (values > self.high + above)

    def spread_range(self, low: float, high: float) -> tuple[float, float]:
        """Return the range over which fitting spreads the values from `low` to `high`.

        Both ends belong to the range, and may be infinite. If no rounded value lies between them
        and all values are rounded, the first end is not below the second.

        Parameters
        ----------
        low, high : float
            Ends of a range of values of the column.

        Returns
        -------
        tuple of float
            Ends of the range of spread values.

        Examples
        --------
        >>> whole = Rounding(1.0, 1.0, 9, low=0.0, high=8.0, decimals=0)
        >>> whole.spread_range(2.5, 5.0), whole.spread_range(2.2, 2.8)
        ((2.5, 5.5), (2.5, 2.5))
        """
        if self.step == 0:
            return low, high
        return self._edge(low, -1), self._edge(high, 1)

    def _edge(self, end: float, side: int) -> float:
        """Return the end of the spread values on one side of an end of a range."""
        if np.isinf(end):
            return end
        if self.points and self.share == 1:
            points = np.array(self.points)
            if side < 0:
                place = int(np.searchsorted(points, end - self.tolerance))
            else:
                place = int(np.searchsorted(points, end + self.tolerance, side="right"))
            ends = np.concatenate([[-np.inf], (points[1:] + points[:-1]) / 2, [np.inf]])
            return float(ends[place])
        nearest, width = (float(each[0]) for each in self.nearest(np.array([end])))
        if abs(end - nearest) > width / 2:  # an exact value
            return end
        inside = side * (end - nearest) >= -max(self.tolerance, ARITHMETIC * self.step)
        return nearest + side * width / 2 if inside else nearest - side * width / 2

    def learned_near_share(self, values: np.ndarray, counts: np.ndarray) -> Self:
        """Return the rounding with the `near_share` of distinct values and their counts."""
        nearest, widths = self.nearest(values)
        distance = np.abs(values - nearest)
        near = counts[distance <= np.maximum(widths / 2, self.tolerance)].sum()
        return replace(self, near_share=float(counts[distance <= self.tolerance].sum() / near))

    def in_units_of(self, unit: float) -> Self:
        """Return the rounding of the values times `unit`, which are no decimal numbers any more."""
        largest = unit * max(abs(self.low), abs(self.high))
        return replace(
            self,
            step=self.step * unit,
            low=self.low * unit,
            high=self.high * unit,
            origin=self.origin * unit,
            decimals=None,
            tolerance=max(self.tolerance * unit, 16 * DOUBLE * largest),
            points=tuple(point * unit for point in self.points),
            widths=tuple(width * unit for width in self.widths),
            exact_decimals=None,
        )

    def __str__(self) -> str:
        """Return the evidence in one sentence."""
        count = self.n_distinct
        if count == 1:
            return f"all values are {self.low:g}"
        if self.step == 0:
            return f"{count} distinct values without a common step"
        if self.points and self.share == 1:
            return f"{count} repeated values without a common step"
        if self.points:
            shown = ", ".join(f"{point:g}" for point in self.points[:5])
            shown += ", ..." if len(self.points) > 5 else ""
            return f"{_percent(self.share)} of the values are {shown}; the others are exact"
        remainder = abs(self.origin - np.rint(self.origin / self.step) * self.step)
        on_grid = f"multiples of {self.step:.4g}"
        if remainder > max(self.tolerance, ARITHMETIC * self.step):
            on_grid = f"{self.origin:.4g} plus {on_grid}"
        if self.share == 1:
            return f"all {count} distinct values are {on_grid}"
        return f"{_percent(self.share)} of the values are {on_grid}; the others are exact"

    def plain(self) -> dict[str, Any]:
        """Return the rounding as JSON content for a model file."""
        return asdict(self)

    @classmethod
    def restored(cls, content: dict[str, Any]) -> Self:
        """Return the rounding whose `plain` content this is."""
        tuples = {name: tuple(content[name]) for name in ("points", "widths")}
        return cls(**{**content, **tuples})


def _percent(share: float) -> str:
    """Return a share below 1 as a percentage that is not rounded to 100 %."""
    return f"{min(100 * share, 99.9):.3g} %"


def is_constant(low: float, high: float) -> bool:
    """Whether the smallest and the largest value of a column differ by arithmetic error only.

    Examples
    --------
    >>> is_constant(0.3, 0.1 + 0.2), is_constant(1e9, 1e9 + 1e-4)
    (True, False)
    """
    return high - low <= 4 * DOUBLE * max(abs(low), abs(high))
