"""`Questions`: densities given some columns, and missing cells, of fitted estimators."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from roundtrip.data import Rows, Schema
from roundtrip.data.conditions import conditions_of, no_conditions
from roundtrip.data.given_tables import outside_of_fit, table_given
from roundtrip.data.parts import completed, leave_out, part_of_rows
from roundtrip.density.conditional import Conditional, conditional_of
from roundtrip.density.conditional_draws import rows_given
from roundtrip.density.fitted import FittedDensity
from roundtrip.density.imputation import likely_cells
from roundtrip.density.method import LARGEST_TOL, Method
from roundtrip.density.probability import ProbabilityEstimate, probabilities_given
from roundtrip.density.result import DensityEstimate
from roundtrip.density.unconverged import warn_of_probabilities
from roundtrip.parameters import check_choice, check_integer, check_number, random_stream


class Questions:
    """Mixin of estimators with a `fitted_` density: questions about parts of rows."""

    fitted_: FittedDensity
    verbose: int

    @property
    def schema_(self) -> Schema:
        """Columns, scaling, context and image layout of the rows."""
        return self.fitted_.schema

    def impute(
        self,
        X: Any,
        *,
        draws: int | None = None,
        how: Literal["mean", "median"] = "mean",
        random_state: int | np.random.RandomState | None = None,
    ) -> Any:
        """Fill missing cells, given the observed cells of their row.

        Observed cells stay as they are. Numbers become means or medians, categories the likeliest
        level, and ordered categories the median level. Such values are too regular for further
        statistics; several `draws` keep the spread and the dependence of the columns. Rows without
        any observed cell are filled like all others, given nothing.

        Parameters
        ----------
        X : array-like or DataFrame
            Rows like those of `fit`.
        draws : int, default=None
            Number of tables whose missing cells are drawn at random; None for one table of means.
        how : {"mean", "median"}, default="mean"
            What numbers become without `draws`.
        random_state : int, numpy.random.RandomState or None, default=None
            Seed of the draws. With None they differ between calls.

        Returns
        -------
        table or list of tables
            Tables like `X` without missing cells; a list of them if `draws` is given.
        """
        check_is_fitted(self)
        check_choice("how", how, ("mean", "median"))
        self._check_table("impute")
        schema, prepared = self.schema_, self.fitted_.prepared
        values = schema.checked_values(self, X, empty_rows=True)
        x = schema.encoded(values).x.to(self.fitted_.model.device)
        incomplete = x.isnan().any(dim=1)
        rng = random_stream(random_state)
        if draws is not None:
            draws = check_integer("draws", draws, minimum=1)
        if not incomplete.any():
            filled = [x[incomplete]] * (draws or 1)
        elif draws is None:
            seed = self.fitted_.seed
            filled = [likely_cells(prepared, x[incomplete], how=how, seed=seed)]
        else:
            drawn = rows_given(
                prepared,
                x[incomplete],
                draws,
                limits={},
                seed=self.fitted_.seed,
                draw_seed=int(rng.randint(2**31 - 1)),
                outside=partial(outside_of_fit, schema, None),
            )
            filled = list(drawn.unflatten(0, (-1, draws)).unbind(1))
        tables = []
        for each in filled:
            whole = x.clone()
            whole[incomplete] = each
            tables.append(completed(schema, values, whole, rng, like=X))
        return tables[0] if draws is None else tables

    def conditional(self, X: Any, column: Any, *, draws: int = 512) -> Conditional:
        """Return the distribution of one column given the rest of each row.

        The cell of the column itself is ignored, if there is one. Missing cells of the rest, and
        columns that a DataFrame leaves out, are integrated out.

        Parameters
        ----------
        X : array-like or DataFrame
            Rows like those of `fit`. A DataFrame may have some of the columns only.
        column : object
            Label of the column, or its number in an array.
        draws : int, default=512
            Draws of z per row. Standard errors fall with its root.

        Returns
        -------
        Conditional
            Means, quantiles, probabilities, densities and draws, with standard errors.
        """
        check_is_fitted(self)
        self._check_table("conditional")
        schema = self.schema_
        labels = list(schema.described())
        if column not in labels:
            raise ValueError(f"column must be one of {labels}, got {column!r}")
        draws = check_integer("draws", draws, minimum=64)
        x = part_of_rows(schema, self, X).x
        leave_out(schema, x, [column])
        index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(x))
        return conditional_of(
            self.fitted_.prepared,
            schema,
            x.to(self.fitted_.model.device),
            labels.index(column),
            draws=draws,
            seed=self.fitted_.seed,
            index=index,
            label=column,
        )

    def probability(
        self, event: Mapping[Any, Any], *, given: Any = None, tol: float = 0.02
    ) -> ProbabilityEstimate:
        """Estimate the probability of ranges and levels, perhaps given others.

        Parameters
        ----------
        event : mapping
            Conditions by column, all of which hold: a range ``(low, high)`` of numbers, dates or
            ordered levels, both ends included, None for an open end; a level or a list of levels;
            a value of a rounded column.
        given : mapping or DataFrame, default=None
            What is known of other columns, as for `sample`. One probability for each row of a
            DataFrame.
        tol : float, default=0.02
            Standard error at which sampling stops, relative to the probability.

        Returns
        -------
        ProbabilityEstimate
            Probabilities with standard errors and diagnostics.
        """
        check_is_fitted(self)
        self._check_table("probability")
        tol = check_number("tol", tol, above=0, below=LARGEST_TOL)
        schema, device = self.schema_, self.fitted_.model.device
        asked = conditions_of(schema, self, event, name="event", exact=False)
        known = no_conditions(schema) if given is None else conditions_of(schema, self, given)
        twice = asked.places & known.places
        if twice:
            labels = list(schema.described())
            listed = ", ".join(repr(labels[place]) for place in sorted(twice))
            raise ValueError(f"event and given both name {listed}")
        found = probabilities_given(
            self.fitted_.prepared,
            known.x.to(device),
            known.limits,
            asked.x.to(device),
            asked.limits,
            tol=tol,
            seed=self.fitted_.seed,
        )
        columns = {name: values.cpu().numpy() for name, values in found.items()}
        result = ProbabilityEstimate(**columns, index=known.index)
        warn_of_probabilities(result, tol)
        return result

    def _check_table(self, question: str) -> None:
        """Raise `ValueError` for images, and for conditional densities."""
        if self.schema_.form is None or self.schema_.context is not None:
            raise ValueError(f"{question} is for densities of tables without a context")

    def _sample_given(
        self, given: Any, count: int, rng: np.random.RandomState, rounded: bool
    ) -> Any:
        """Draw `count` rows for each row of conditions."""
        self._check_table("sample(given=...)")
        schema = self.schema_
        known = conditions_of(schema, self, given)
        if not np.isnan(known.values).any(axis=1).all():
            raise ValueError("given= has a value for every column, so that nothing is left to draw")
        x = rows_given(
            self.fitted_.prepared,
            known.x.to(self.fitted_.model.device),
            count,
            limits=known.limits,
            seed=self.fitted_.seed,
            draw_seed=int(rng.randint(2**31 - 1)),
            outside=partial(outside_of_fit, schema, known) if rounded else None,
        )
        return table_given(schema, known, x, rng if rounded else None)

    def _density_of_given(
        self, rows: Rows, given: Sequence[Any], how: Method, sigma: float | None
    ) -> DensityEstimate:
        """Estimate the density of the given columns alone; that of no observed cell is 1."""
        schema = self.schema_
        if schema.form is None:
            raise ValueError("given= is for tables, and these are images")
        known = list(schema.described())
        given = [given] if isinstance(given, str) else list(given)
        unknown = [label for label in given if label not in known]
        if unknown or not 0 < len(set(given)) < len(known):
            raise ValueError(
                f"given must name some, but not all, of the columns {known}, got {given!r}"
            )
        x = rows.x.clone()
        leave_out(schema, x, [label for label in known if label not in given])
        if bool(rows.x.isnan().eq(x.isnan()).all(dim=1).any()):
            raise ValueError("rows have no observed cell beside those of the given columns")
        seen = ~x.isnan().all(dim=1)
        if not seen.any():
            raise ValueError(f"no row has an observed cell in the given columns {given!r}")
        part = self.fitted_.density(
            Rows(x[seen], rows.context[seen]), how, sigma=sigma, verbose=bool(self.verbose)
        )
        return part.spread_over(seen.cpu().numpy())
