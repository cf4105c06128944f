"""`RoundtripImputer`: missing cells filled by a density, as a transformer of scikit-learn."""

import copy
from typing import Any, Literal, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from roundtrip.data.checks import unchanged_if_it_fails
from roundtrip.data.libraries import as_frame
from roundtrip.data.missing import without_empty_rows
from roundtrip.data.tags import TakesAnyCells
from roundtrip.estimator import Roundtrip
from roundtrip.io.saved import (
    FileParts,
    Restoring,
    SavedToFile,
    plain_estimator,
    plain_parameters,
)
from roundtrip.parameters import check_choice, check_integer


class RoundtripImputer(
    SavedToFile, TakesAnyCells, OneToOneFeatureMixin, TransformerMixin, BaseEstimator
):
    """Fill missing cells, given the observed cells of their row, by a `Roundtrip` density.

    `fit` takes tables of any kinds of columns with missing cells. Columns without any observed cell
    are refused there. Rows without any observed cell are left out of `fit`, and `transform` fills
    them like all others, given nothing.

    Parameters
    ----------
    estimator : Roundtrip, optional
        Density to fit; by default one with default settings.
    n_draws : int, default=None
        None fills numbers by means (or medians), categories by their likeliest level and ordered
        categories by their median level. An integer draws cells at random instead: with 1,
        `transform` returns a table; with more, a list of so many tables (multiple imputation).
    how : {"mean", "median"}, default="mean"
        What numbers become without `n_draws`.
    columns : mapping, optional
        Kinds of columns that are not to be inferred, as for `Roundtrip`: ``{"zip": "category"}``.
    max_time : float, optional
        Seconds after which training ends, as in `Roundtrip.fit`.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed of the draws, also of the density if that has none of its own.

    Attributes
    ----------
    estimator_ : Roundtrip
        The fitted density, which answers other questions, too: ``estimator_.conditional``.
    n_features_in_, feature_names_in_ : int, numpy.ndarray
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 1)) * [1.0, -2.0]
    >>> X[::5, 1] = np.nan
    >>> imputer = RoundtripImputer(Roundtrip(max_epochs=2), random_state=0)
    >>> filled = imputer.fit_transform(X)
    >>> filled.shape, bool(np.isnan(filled).any())
    ((200, 2), False)
    >>> first, second = imputer.set_params(n_draws=2).transform(X)
    >>> bool((first == second).all())
    False
    """

    def __init__(
        self,
        estimator: Roundtrip | None = None,
        *,
        n_draws: int | None = None,
        how: Literal["mean", "median"] = "mean",
        columns: Any = None,
        max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_draws = n_draws
        self.how = how
        self.columns = columns
        self.max_time = max_time
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the density to the rows of `X`. If this fails, the imputer does not change.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, with missing cells.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        with unchanged_if_it_fails(self):
            self._check_parameters()
            density = Roundtrip() if self.estimator is None else clone(self.estimator)
            if self.columns is not None:
                density.columns = self.columns
            if density.random_state is None:
                density.random_state = self.random_state
            density.fit(without_empty_rows(X), max_time=self.max_time)
            return self._with_density(density)

    @classmethod
    def from_density(
        cls,
        estimator: Roundtrip,
        *,
        n_draws: int | None = None,
        how: Literal["mean", "median"] = "mean",
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """Make an imputer from a fitted density.

        Parameters
        ----------
        estimator : Roundtrip
            Density of a table, fitted without a context.
        n_draws, how, random_state : object
            As in the constructor.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> X[::5, 1] = np.nan
        >>> density = Roundtrip(max_epochs=2, random_state=0).fit(X)
        >>> RoundtripImputer.from_density(density).transform([[0.5, np.nan]]).shape
        (1, 2)
        """
        check_is_fitted(estimator)
        if estimator.schema_.form is None or estimator.schema_.context is not None:
            raise ValueError("an imputer needs a density of a table without a context")
        estimator = copy.copy(estimator)  # a later fit of the caller's would be another density
        imputer = cls(estimator, n_draws=n_draws, how=how, random_state=random_state)
        imputer._check_parameters()
        return imputer._with_density(estimator)

    def transform(self, X: Any) -> Any:
        """Fill the missing cells of rows.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, like the table of `fit`.

        Returns
        -------
        table or list of tables
            A table of the library of `fit`, or of that of `set_output`; with `n_draws` above 1 a
            list of them.
        """
        check_is_fitted(self)
        self._check_parameters()
        several = self.n_draws is not None and self.n_draws > 1
        if several and self._output != "default":
            raise ValueError(
                f"n_draws={self.n_draws} gives a list of tables, of which set_output can't make "
                f"one {self._output} table; use n_draws=1 or None"
            )
        tables = self.estimator_.impute(
            X, draws=self.n_draws, how=self.how, random_state=self.random_state
        )
        if several:
            return tables
        table = tables[0] if self.n_draws == 1 else tables
        if self._output == "pandas":  # scikit-learn makes objects of other libraries' columns
            _, frame = as_frame(table)
            return table if frame is None else frame
        return table

    @property
    def _output(self) -> str:
        """The library that `set_output`, or scikit-learn's configuration, asks for."""
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        return own or get_config()["transform_output"]

    def _check_parameters(self) -> None:
        if not (self.estimator is None or isinstance(self.estimator, Roundtrip)):
            raise ValueError(f"estimator must be a Roundtrip, got {type(self.estimator).__name__}")
        if self.n_draws is not None:
            check_integer("n_draws", self.n_draws, minimum=1)
        check_choice("how", self.how, ("mean", "median"))

    def _with_density(self, density: Roundtrip) -> Self:
        """Set the fitted attributes."""
        density.schema_.name_features(self)
        self.estimator_ = density
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def _file_parts(self) -> FileParts:
        content = {
            "parameters": plain_parameters(self.get_params(deep=False) | {"estimator": None}),
            "estimator": plain_estimator(self.estimator),
        }
        parts = FileParts(content, {})
        parts.add("density", self.estimator_._file_parts())
        return parts

    @classmethod
    def _from_file_parts(cls, parts: FileParts, how: Restoring) -> Self:
        imputer = cls(**how.parameters(parts.content["parameters"]))
        imputer.estimator = how.estimator(Roundtrip, parts.content["estimator"])
        return imputer._with_density(Roundtrip._from_file_parts(parts.within("density"), how))
