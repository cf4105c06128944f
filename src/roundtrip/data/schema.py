"""`Schema`: what the user's rows look like, and their conversion to tensors and back."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from roundtrip.data.checks import check_names, checked_table, remember_labels
from roundtrip.data.context import Context
from roundtrip.data.copies import groups_of_copies
from roundtrip.data.images import ImageLayout, are_images, check_channels
from roundtrip.data.inference import check_overrides
from roundtrip.data.kinds import CategoryColumn, Column
from roundtrip.data.libraries import as_frame
from roundtrip.data.masked import unmasked
from roundtrip.data.missing import (
    MISSING,
    check_columns,
    check_rows,
    indicator_columns,
    with_indicators,
    without_indicators,
)
from roundtrip.data.rounding import Rounding
from roundtrip.data.rows import Rows
from roundtrip.data.scaling import Scaling
from roundtrip.data.schema_file import file_parts, restored_parts
from roundtrip.data.table_format import TableFormat
from roundtrip.data.units import rounding_of, scaling_of


@dataclass(frozen=True)
class Schema:
    """The layout and units of the user's rows.

    Only the schema converts cells, scales and rounds rows, flattens images, encodes context and
    names columns.

    Attributes
    ----------
    scaling : Scaling
        Map between the user's units and scaled units, in which models work.
    rounding : tuple of Rounding
        Rounding of each feature in the user's units; empty for images.
    form : TableFormat or None
        Library, labels and kinds of the columns of tables; None for images.
    context : Context or None
        Encoding of the context; None for an unconditional density.
    images : ImageLayout or None
        Layout of the images of fit; None for tables.
    kinds : tuple of Column
        Kind of each feature, those that say which cells are missing included; empty for images.
    incomplete : numpy.ndarray
        `(features,)` bool, which features had missing cells in fit.
    indicated : tuple of int, default=()
        Columns for which a feature at the end says whether their cell is missing.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> schema, rows = Schema.fit(BaseEstimator(), [[0.0], [4.0]], None, scale="minmax")
    >>> rows.x.tolist(), schema.log_det
    ([[0.0], [1.0]], -1.3862943611198906)
    >>> schema.table(torch.tensor([[0.5]])).tolist()
    [[2.0]]
    """

    scaling: Scaling
    rounding: tuple[Rounding, ...]
    form: TableFormat | None
    context: Context | None
    images: ImageLayout | None
    kinds: tuple[Column, ...]
    incomplete: np.ndarray
    indicated: tuple[int, ...] = ()

    @classmethod
    def fit(
        cls,
        owner: Any,
        X: Any,
        context: Any,
        *,
        scale: str | None,
        columns: Any = None,
        missing: str = "ignore",
    ) -> tuple[Self, Rows]:
        """Learn the schema of a table, and return it with the converted rows.

        Parameters
        ----------
        owner : object
            The estimator; its ``n_features_in_`` and ``feature_names_in_`` are set.
        X : array-like
            A table or images.
        context : array-like or None
            The context of the rows.
        scale : {"standard", "minmax"} or None
            Kind of scaling; images are only divided by their largest possible value.
        columns : mapping or None, default=None
            Kinds of columns, by their labels, where they are not to be inferred.
        missing : {"ignore", "model"}, default="ignore"
            Whether features say which cells are missing.

        Returns
        -------
        schema : Schema
            The schema.
        rows : Rows
            The rows as float64 tensors on the CPU, NaN for missing cells.
        """
        X = unmasked(X)
        check_overrides(columns)
        if missing not in MISSING:
            raise ValueError(f"missing must be one of {MISSING}, got {missing!r}")
        encoding = None if context is None else Context.fit(context)
        if are_images(X):
            if columns:
                raise ValueError("columns= is for tables, and these are images")
            images = ImageLayout.of(X)
            values = checked_table(owner, images.flatten(X), ensure_min_samples=2, reset=True)
            # As in the paper, images are only rescaled to [0, 1].
            scaling = Scaling(np.zeros(images.features), np.full(images.features, images.top))
            complete = np.zeros(images.features, dtype=bool)
            schema = cls(scaling, (), None, encoding, images, (), complete)
            return schema, schema.encoded(values, context)
        check_channels(X)
        form, cells = TableFormat.learned(X, columns)
        values = _checked(owner, cells, ensure_min_samples=2, reset=True)
        check_columns(cells, values)
        check_rows(cells, values)
        incomplete = np.isnan(values).any(axis=0)
        indicated = tuple(map(int, np.flatnonzero(incomplete))) if missing == "model" else ()
        kinds = (*form.columns, *indicator_columns(values, indicated))
        features = with_indicators(values, indicated)
        rounding = rounding_of(features, kinds)
        form = form.with_steps([each.step for each in rounding[: len(form.columns)]])
        schema = cls(
            scaling_of(features, kinds, scale, form.labels),
            rounding,
            form,
            encoding,
            None,
            (*form.columns, *kinds[len(form.columns) :]),
            np.append(incomplete, np.zeros(len(indicated), dtype=bool)),
            indicated,
        )
        return schema, schema.encoded(values, context)

    @property
    def columns(self) -> list[Any] | None:
        """Labels of the columns of the table of fit; None for arrays and images."""
        return None if self.form is None else self.form.labels

    @property
    def n_columns(self) -> int:
        """Columns of the user's tables, or pixels of an image."""
        return self.features - len(self.indicated)

    @property
    def has_only_numbers(self) -> bool:
        """Whether fit had images, or a table of numbers without missing cells."""
        return self.form is None or (self.form.is_plain and not self.incomplete.any())

    def described(self) -> dict[Any, Column]:
        """Return the kind of each column by its label, or by its number; empty for images."""
        if self.form is None:
            return {}
        labels = range(self.n_columns) if self.columns is None else self.columns
        return dict(zip(labels, self.form.columns, strict=True))

    @property
    def is_category(self) -> np.ndarray:
        """Which features are categories, `(features,)` bool; false for images."""
        if not self.kinds:
            return np.zeros(self.features, dtype=bool)
        return np.array([isinstance(kind, CategoryColumn) for kind in self.kinds])

    @property
    def is_mixed(self) -> bool:
        """Whether a feature is a category, or had missing cells in fit."""
        return bool(self.incomplete.any() or self.is_category.any())

    @property
    def features(self) -> int:
        """Features per row, those that say which cells are missing included."""
        return len(self.scaling.shift)

    @property
    def resolution(self) -> np.ndarray:
        """Rounding steps in the user's units, `(features,)`; 0 for columns without rounding."""
        if not self.rounding:
            return np.zeros(self.features)
        return np.array([column.step for column in self.rounding])

    @property
    def context_dim(self) -> int:
        """Encoded numbers of context per row."""
        return 0 if self.context is None else self.context.width

    @property
    def log_det(self) -> float:
        """log|det| of the scaling; adding it converts log densities to the user's units."""
        return self.scaling.log_det

    def mixed_columns(self) -> str:
        """Return the names of the columns with categories or missing cells, for messages."""
        labels = self.columns or [f"x{place}" for place in range(self.features)]
        return ", ".join(
            str(label)
            for label, kind, holes in zip(labels, self.kinds, self.incomplete, strict=False)
            if holes or isinstance(kind, CategoryColumn)
        )

    def check_complete(self, name: str, rows: Rows) -> None:
        """Raise `ValueError` for missing cells if training has complete rows only."""
        if not self.is_mixed and bool(rows.x.isnan().any()):
            raise ValueError(
                f"{name} has missing cells, but the table of fit has none, so that training can't "
                "take them; fill the cells, or drop the rows"
            )

    def log_dets(self, x: Tensor) -> np.ndarray:
        """Return the log|det| of the scaling of the observed numbers of each row.

        Parameters
        ----------
        x : Tensor of shape (rows, features)
            Rows in scaled units.

        Returns
        -------
        numpy.ndarray
            `(rows,)`; adding it converts log densities of observed cells to the user's units.
        """
        missing = torch.isnan(x).cpu().numpy()
        if not missing.any():
            return np.full(len(x), self.log_det)
        return -(~missing @ np.log(self.scaling.scale))

    def unseen(self, x: Tensor) -> np.ndarray:
        """Return which cells have unseen levels, `(rows, features)` bool."""
        levels = [
            len(kind.levels) if isinstance(kind, CategoryColumn) else np.inf for kind in self.kinds
        ]
        return x.cpu().numpy() == np.array(levels or np.inf)

    @property
    def scaled_resolution(self) -> np.ndarray:
        """Rounding steps in scaled units, `(features,)`."""
        return self.resolution / self.scaling.scale

    def copies(self, x: Tensor) -> np.ndarray | None:
        """Return for each row in scaled units its group of copies, None if there are few copies."""
        if self.images is not None:
            return None
        steps = np.where(self.is_category, np.nan, self.scaled_resolution)
        return groups_of_copies(x.cpu().numpy(), steps)

    def spread_widths(self, x: Tensor) -> Tensor:
        """Return the widths over which fitting spreads the values of rows, in scaled units.

        Parameters
        ----------
        x : Tensor of shape (rows, features)
            Rows in scaled units.

        Returns
        -------
        Tensor
            `(features,)`, or `(rows, features)` if columns are partly rounded.
        """
        if all(column.complete or column.step == 0 for column in self.rounding):
            widths = self.scaled_resolution
        else:
            values = self.values(x)
            each = [c.spread_widths(v) for c, v in zip(self.rounding, values.T, strict=True)]
            widths = np.stack(each, axis=1) / self.scaling.scale
        return torch.from_numpy(widths).to(x.device)

    def with_columns_of(self, X: Any) -> Self:
        """Return the schema with the labels and types of the columns of `X`."""
        if self.form is None:
            return self
        form = self.form.relabelled(unmasked(X))
        kinds = (*form.columns, *self.kinds[len(form.columns) :])
        return replace(self, form=form, kinds=kinds)

    def name_features(self, owner: Any) -> None:
        """Set the attributes of `owner` that scikit-learn's `fit` sets."""
        owner.n_features_in_ = self.n_columns
        if self.columns is not None and all(isinstance(name, str) for name in self.columns):
            owner.feature_names_in_ = np.array(self.columns, dtype=object)
        remember_labels(owner, self.columns)

    def rows(self, owner: Any, X: Any, context: Any = None, *, min_rows: int = 1) -> Rows:
        """Check rows against those of fit and convert them.

        Parameters
        ----------
        owner : object
            The fitted estimator.
        X : array-like
            Rows like those of fit.
        context : array-like or None, default=None
            Their context, if fit had one.
        min_rows : int, default=1
            Fewer rows raise `ValueError`.

        Returns
        -------
        Rows
            float64 tensors on the CPU, NaN for missing cells.
        """
        return self.encoded(self.checked_values(owner, X, min_rows=min_rows), context)

    def checked_values(
        self, owner: Any, X: Any, *, min_rows: int = 1, empty_rows: bool = False
    ) -> np.ndarray:
        """Check rows against those of fit and return their values in the user's units.

        Parameters
        ----------
        owner : object
            The fitted estimator.
        X : array-like
            Rows like those of fit.
        min_rows : int, default=1
            Fewer rows raise `ValueError`.
        empty_rows : bool, default=False
            Whether rows may be without any observed cell.

        Returns
        -------
        numpy.ndarray
            `(rows, columns)` float64: numbers, days, places of levels, and NaN for missing cells.
        """
        X = unmasked(X)
        settings: dict[str, Any] = {"ensure_min_samples": min_rows, "reset": False}
        check_channels(X)
        if self.form is None:
            assert self.images is not None
            return checked_table(owner, self.images.flatten(X), **settings)
        _, frame = as_frame(X)
        if frame is not None:
            check_names(owner, frame)
        cells = self.form.cells(X if frame is None else frame)
        values = _checked(owner, cells, **settings)
        if not empty_rows:
            check_rows(cells, values)
        return values

    def encoded(self, values: np.ndarray, context: Any = None) -> Rows:
        """Convert checked values `(rows, columns)` in the user's units, and their context."""
        x = self.scaling.apply(with_indicators(values, self.indicated))
        missing = np.isnan(x)
        if missing.any():  # a user's NaN may have other bits, by which fits would differ
            x[missing] = np.nan
        return Rows(torch.from_numpy(x), self.encoded_context(context, len(values)))

    def without_context(self, owner: Any, X: Any) -> Rows:
        """Check and convert rows without a context, even if fit had one."""
        return replace(self, context=None).rows(owner, X)

    def encoded_context(self, context: Any, n_rows: int) -> Tensor:
        """Encode the context of rows, `(n_rows, context_dim)`; no columns without a context."""
        if self.context is not None:
            return torch.from_numpy(self.context.encode(context, n_rows))
        if context is not None:
            raise ValueError("context= was not given in fit, so this density takes no context")
        return torch.empty((n_rows, 0), dtype=torch.float64)

    def values(self, x: Tensor) -> np.ndarray:
        """Convert `(rows, features)` in scaled units to flat rows in the user's units."""
        return self.scaling.undo(x.double().cpu().numpy())

    def outside(self, x: Tensor) -> Tensor:
        """Return which cells of rounded columns leave the range of fit, `(rows, features)`.

        Parameters
        ----------
        x : Tensor of shape (rows, features)
            Rows in scaled units.

        Returns
        -------
        Tensor
            A mask.
        """
        cells = np.zeros(x.shape, dtype=bool)
        # Cells that a sample leaves out may be anywhere.
        columns = without_indicators(self.values(x), self.indicated).T
        for place, (column, values) in enumerate(zip(self.rounding, columns, strict=False)):
            cells[:, place] = column.outside(values)
        return torch.from_numpy(cells).to(x.device)

    def table(self, x: Tensor, rng: np.random.RandomState | None = None) -> Any:
        """Convert rows in scaled units to the form of fit's X.

        Parameters
        ----------
        x : Tensor of shape (rows, features)
            Rows in scaled units.
        rng : numpy.random.RandomState or None, default=None
            If given, numbers are rounded like those of fit and get their types; it decides which
            values of a partly rounded column are rounded.

        Returns
        -------
        numpy.ndarray or DataFrame
            A table of the library of fit, or an array of images.
        """
        if self.form is None:
            return self.array(x)
        values = without_indicators(self.values(x), self.indicated)
        rounding = self.rounding[: self.n_columns]
        if rng is not None:
            each = zip(rounding, values.T, strict=True)
            values = np.stack([column.rounded(v, rng) for column, v in each], axis=1)
        ranges = [(column.low, column.high) for column in rounding]
        return self.form.table(values, ranges, exact=rng is not None)

    def array(self, x: Tensor) -> np.ndarray:
        """Convert `(rows, features)` in scaled units to an array of rows or of images."""
        values = self.values(x)
        return values if self.images is None else self.images.unflatten(values)

    def file_parts(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the JSON content and the tensors that a model file holds of the schema."""
        return file_parts(vars(self))

    @classmethod
    def from_file(cls, content: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """Return the schema whose `file_parts` these are."""
        return cls(**restored_parts(content, tensors))


def _checked(owner: Any, cells: Any, **settings: Any) -> np.ndarray:
    return checked_table(owner, cells, ensure_all_finite="allow-nan", **settings)
