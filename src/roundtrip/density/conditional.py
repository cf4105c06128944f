"""`Conditional`: the distribution of one column given the rest of each row, in the user's units."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from roundtrip.data import Schema
from roundtrip.data.column_units import ColumnUnits
from roundtrip.data.kinds import CategoryColumn, Column
from roundtrip.density.column_law import ColumnLaw
from roundtrip.density.part_posterior import ROWS_AT_ONCE, PartPosterior, WeightedCodes
from roundtrip.density.prepared import PreparedModel
from roundtrip.exceptions import DensityWarning, warn_user
from roundtrip.parameters import check_integer, check_number, random_stream

MODE_CANDIDATES = 64
"""Draws of which the likeliest is the mode of a number."""


@dataclass(frozen=True, repr=False)
class Conditional:
    """p(x_j | rest of the row) of one column j, for each row of a table.

    It is what the model says of a column before its cell is seen: a mixture of p(x_j | z) over
    draws of z given the other observed cells. Answers are Series and DataFrames with the index of
    the rows, in the units of the column; dates come out as dates. With ``with_error=True`` a method
    returns a pair: its answer and the standard errors that the finite number of draws leaves. They
    are reliable where `converged` is true.

    Methods for numbers, dates and durations: `mean`, `std`, `mode`, `quantile`, `interval`, `cdf`,
    `log_prob`, `sample`. For categories: `probabilities`, `mode`, `log_prob`, `sample`, and for
    ordered ones `quantile`, `interval` and `cdf`, too.

    Attributes
    ----------
    label : object
        Label of the column.
    index : pandas.Index
        Labels of the rows.
    units : ColumnUnits
        Units, rounding and type of the column.
    law : ColumnLaw
        The distributions in scaled units.
    """

    label: Any
    index: pd.Index
    units: ColumnUnits
    law: ColumnLaw

    def __len__(self) -> int:
        return len(self.index)

    def taken(self, rows: Any) -> "Conditional":
        """Return the distributions of some of the rows, by their numbers.

        Parameters
        ----------
        rows : int, slice, sequence of int or mask
            Which rows.

        Returns
        -------
        Conditional
            Their distributions.
        """
        numbers = np.atleast_1d(np.arange(len(self))[rows])
        law = self.law[torch.from_numpy(numbers).to(self.law.codes.z.device)]
        return Conditional(self.label, self.index[numbers], self.units, law)

    @property
    def ess(self) -> np.ndarray:
        """Effective sample sizes of the draws of z, `(rows,)`."""
        return _numbers(self.law.codes.ess)

    @property
    def pareto_k(self) -> np.ndarray:
        """Tail shapes of the importance weights, `(rows,)`; above 0.7 a row is unreliable."""
        return _numbers(self.law.codes.pareto_k)

    @property
    def converged(self) -> np.ndarray:
        """Whether answers and their standard errors are reliable, `(rows,)` bool."""
        return _numbers(self.law.codes.converged)

    def mean(self, *, with_error: bool = False) -> Any:
        """Return the means.

        Parameters
        ----------
        with_error : bool, default=False
            Whether to return standard errors, too.

        Returns
        -------
        Series or tuple of Series
            The means.
        """
        self._check_numeric("mean")
        mean, error = self.law.mean()
        return self._pair(
            self.units.means(self.units.unscaled(_numbers(mean))),
            self.units.widths(_numbers(error)),
            with_error,
            series=True,
        )

    def std(self, *, with_error: bool = False) -> Any:
        """Return the standard deviations; of dates, as durations.

        Parameters
        ----------
        with_error : bool, default=False
            Whether to return standard errors, too.

        Returns
        -------
        Series or tuple of Series
            The standard deviations.
        """
        self._check_numeric("std")
        std, error = self.law.std()
        return self._pair(
            self.units.widths(_numbers(std)),
            self.units.widths(_numbers(error)),
            with_error,
            series=True,
        )

    def quantile(self, q: Any, *, with_error: bool = False) -> Any:
        """Return quantiles: the smallest values whose cdf is at least `q`.

        Parameters
        ----------
        q : float or sequence of float
            Probabilities between 0 and 1.
        with_error : bool, default=False
            Whether to return standard errors, too.

        Returns
        -------
        Series, DataFrame or tuple of two
            A Series for one number; a DataFrame with a column for each of several.
        """
        self._check_ordered("quantile")
        levels = [check_number("q", each, above=0, below=1) for each in np.atleast_1d(q).tolist()]
        if isinstance(self._column, CategoryColumn):
            if with_error:
                raise ValueError("quantiles of levels have no standard errors; use probabilities()")
            cumulative = self.law.probabilities()[0].cumsum(1)
            share = torch.tensor(levels).to(cumulative) * cumulative[:, -1:]
            place = (cumulative[:, None] < share[..., None]).sum(-1)
            answer = self.units.decoded(_numbers(place.double()))
            return self._pair(answer, answer, False, series=np.ndim(q) == 0, names=levels)
        x, error = self.law.quantile(torch.tensor(levels).to(self.law.codes.weights))
        values = self.units.rounded(self.units.unscaled(_numbers(x)))
        return self._pair(
            self.units.decoded(values),
            self.units.widths(_numbers(error)),
            with_error,
            np.ndim(q) == 0,
            names=levels,
        )

    def interval(self, level: float) -> pd.DataFrame:
        """Return central intervals: as much probability lies below them as above.

        Parameters
        ----------
        level : float
            Probability of the interval, such as 0.9.

        Returns
        -------
        DataFrame
            Columns "lower" and "upper".
        """
        level = check_number("level", level, above=0, below=1)
        ends = self.quantile([(1 - level) / 2, (1 + level) / 2])
        return ends.set_axis(["lower", "upper"], axis=1)

    def cdf(self, x: Any, *, with_error: bool = False) -> Any:
        """Return the probability of values up to x.

        Parameters
        ----------
        x : object
            A value for all rows, one for each row, or an array of `(rows, points)`.
        with_error : bool, default=False
            Whether to return standard errors, too.

        Returns
        -------
        Series, DataFrame or tuple of two
            Probabilities; a DataFrame if x has several points for a row.
        """
        self._check_ordered("cdf")
        values = self._encoded(x)
        if isinstance(self._column, CategoryColumn):
            p, error = self.law.cdf(self._scaled(values))
        else:
            p, error = self.law.cdf(self._scaled(self.units.upper_ends(values)))
        return self._pair(_numbers(p), _numbers(error), with_error, np.ndim(x) < 2)

    def log_prob(self, x: Any, *, with_error: bool = False) -> Any:
        """Return log densities of numbers, or log probabilities of levels.

        It is what ``density(df, given=all other columns)`` estimates, from one set of draws.

        Parameters
        ----------
        x : object
            A value for all rows, one for each row, or an array of `(rows, points)`.
        with_error : bool, default=False
            Whether to return standard errors, too.

        Returns
        -------
        Series, DataFrame or tuple of two
            Log densities; a DataFrame if x has several points for a row.
        """
        log_p, error = self.law.log_prob(self._scaled(self._encoded(x)))
        log_density = _numbers(log_p) - np.log(self.units.scale)
        return self._pair(log_density, _numbers(error), with_error, np.ndim(x) < 2)

    def probabilities(self, *, with_error: bool = False) -> Any:
        """Return the probabilities of the levels of a category.

        They sum to 1 less the reserved probability of unseen levels.

        Parameters
        ----------
        with_error : bool, default=False
            Whether to return standard errors, too.

        Returns
        -------
        DataFrame or tuple of DataFrame
            A column for each level.
        """
        if not isinstance(self._column, CategoryColumn):
            raise ValueError(
                f"probabilities() is for categories, but {self.label!r} is a {self._column}; use "
                "cdf or quantile"
            )
        p, error = self.law.probabilities()
        levels = list(self._column.levels)
        return self._pair(_numbers(p), _numbers(error), with_error, False, names=levels)

    def mode(self) -> pd.Series:
        """Return the likeliest levels; of numbers, the likeliest of some draws.

        Returns
        -------
        Series
            One value per row.
        """
        if isinstance(self._column, CategoryColumn):
            level = self.law.probabilities()[0].argmax(1, keepdim=True)
            return self._series(self.units.decoded(_numbers(level.double())))
        rng = torch.Generator().manual_seed(0)
        draws = self.units.rounded(
            self.units.unscaled(_numbers(self.law.sample(MODE_CANDIDATES, rng)))
        )
        rounding = self.units.rounding
        if rounding.complete:
            half = rounding.step / 2
            below, above = (self._scaled(draws + side) for side in (-half, half))
            likely = self.law.averaged_cdf(above) - self.law.averaged_cdf(below)
        else:
            likely = self.law.log_prob(self._scaled(draws))[0]
        best = _numbers(likely.argmax(1))
        return self._series(self.units.decoded(draws[np.arange(len(draws)), best][:, None]))

    def sample(
        self, n: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> pd.DataFrame:
        """Draw values of the column.

        Parameters
        ----------
        n : int, default=1
            Draws per row. If they are many, compare `ess`: they follow the same mixture as all
            other answers.
        random_state : int, numpy.random.RandomState or None, default=None
            Seed. With None draws differ between calls.

        Returns
        -------
        DataFrame
            `(rows, n)`.
        """
        n = check_integer("n", n, minimum=1)
        stream = random_stream(random_state)
        rng = torch.Generator().manual_seed(int(stream.randint(2**31 - 1)))
        values = self.units.unscaled(_numbers(self.law.sample(n, rng)))
        if not isinstance(self._column, CategoryColumn):
            values = self.units.rounded(values, stream)
        return self._frame(self.units.decoded(values), list(range(n)))

    def __repr__(self) -> str:
        rows, failed = len(self), int((~self.converged).sum())
        text = f"<Conditional: {self.label!r}, a {self._column}, given the rest of {rows} row"
        text += f"{'s' * (rows != 1)}; median ess {np.median(self.ess):.0f}"
        return text + (f", {failed} did not converge>" if failed else ">")

    @property
    def _column(self) -> Column:
        return self.units.column

    def _encoded(self, x: Any) -> np.ndarray:
        return self.units.encoded(x, len(self))

    def _scaled(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(self.units.scaled(values)).to(self.law.codes.weights)

    def _check_numeric(self, method: str) -> None:
        if isinstance(self._column, CategoryColumn):
            raise ValueError(
                f"{method}() is for numbers, dates and durations, but {self.label!r} is a "
                f"{self._column}; use probabilities() or mode()"
            )

    def _check_ordered(self, method: str) -> None:
        if isinstance(self._column, CategoryColumn) and not self._column.ordered:
            raise ValueError(
                f"{method} needs an order, but {self.label!r} is a {self._column}; use "
                "probabilities() or mode()"
            )

    def _pair(
        self, answer: Any, error: Any, with_error: bool, series: bool, names: Any = None
    ) -> Any:
        both: list[Any] = []
        for values in (answer, error)[: 1 + with_error]:
            columns = values if isinstance(values, list) else [pd.Series(v) for v in values.T]
            if series:
                both.append(self._series(columns))
            else:
                both.append(self._frame(columns, names or list(range(len(columns)))))
        return tuple(both) if with_error else both[0]

    def _series(self, columns: list[pd.Series]) -> pd.Series:
        return columns[0].set_axis(self.index).rename(self.label)

    def _frame(self, columns: list[pd.Series], names: list[Any]) -> pd.DataFrame:
        frame = pd.concat(columns, axis=1)
        return frame.set_axis(pd.Index(names), axis=1).set_axis(self.index, axis=0)


def _numbers(values: Tensor) -> np.ndarray:
    return values.cpu().numpy()


@torch.no_grad()
def conditional_of(
    prepared: PreparedModel,
    schema: Schema,
    x: Tensor,
    place: int,
    *,
    draws: int,
    seed: int,
    index: pd.Index,
    label: Any,
) -> Conditional:
    """Return the distribution of one column given the rest of each row.

    Parameters
    ----------
    prepared : PreparedModel
        Model without a context.
    schema : Schema
        The schema of the table of fit.
    x : Tensor
        Rows in scaled units whose cell of the column is NaN, `(rows, features)`.
    place : int
        Place of the column.
    draws : int
        Draws of z per row.
    seed : int
        Seed of the draws.
    index : pandas.Index
        Labels of the rows.
    label : object
        Label of the column.

    Returns
    -------
    Conditional
        The distributions.
    """
    parts = []
    for block in x.split(ROWS_AT_ONCE):
        posterior = PartPosterior.settled(prepared, block, limits={}, seed=seed)
        parts.append(posterior.reliable_draws(draws, seed=seed, stream="conditional")[1])
    codes = WeightedCodes.joined(parts)
    failed = int((~codes.converged).sum())
    if failed:
        warn_user(
            f"{failed} of {len(x)} rows have draws of z whose importance weights are too uneven "
            "(pareto_k): `converged` is False for them. More draws= may help.",
            DensityWarning,
        )
    law = ColumnLaw(posterior.model, place, codes)
    return Conditional(label, index, ColumnUnits.of(schema, place), law)
