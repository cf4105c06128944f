"""`Schema`: what the user's rows look like, and their conversion to tensors and back."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from roundtrip.data.checks import checked_table
from roundtrip.data.column_types import column_types, with_types
from roundtrip.data.context import Context, check_label
from roundtrip.data.images import ImageLayout, are_images, check_channels
from roundtrip.data.resolution import recognise
from roundtrip.data.rounding import Rounding
from roundtrip.data.rows import Rows
from roundtrip.data.scaling import Scaling


@dataclass(frozen=True)
class Schema:
    """The layout and units of the user's rows.

    Only the schema scales and rounds rows, flattens images, encodes context and names columns.

    Attributes
    ----------
    scaling : Scaling
        Map between the user's units and scaled units, in which models work.
    rounding : tuple of Rounding
        Rounding of each column in the user's units; empty for images.
    columns : list or None
        Column labels of the DataFrame of fit; None for arrays.
    context : Context or None
        Encoding of the context; None for an unconditional density.
    images : ImageLayout or None
        Layout of the images of fit; None for tables.
    types : tuple of str or None
        Types of the columns of a DataFrame, or of an array; None for other tables and images.

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
    columns: list[Any] | None = None
    context: Context | None = None
    images: ImageLayout | None = None
    types: tuple[str, ...] | None = None

    @classmethod
    def fit(cls, owner: Any, X: Any, context: Any, *, scale: str | None) -> tuple[Self, Rows]:
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

        Returns
        -------
        schema : Schema
            The schema.
        rows : Rows
            The rows as float64 tensors on the CPU.
        """
        images = ImageLayout.of(X) if are_images(X) else None
        columns = list(X.columns) if isinstance(X, pd.DataFrame) else None
        values = _checked(owner, X, images, ensure_min_samples=2, reset=True)
        if images is None:
            scaling = Scaling.fit(values, scale)
            rounding = tuple(recognise(column) for column in values.T)
        else:  # as in the paper, images are only rescaled to [0, 1]
            scaling = Scaling(np.zeros(images.features), np.full(images.features, images.top))
            rounding = ()
        encoding = None if context is None else Context.fit(context)
        schema = cls(scaling, rounding, columns, encoding, images, column_types(X))
        return schema, schema.encoded(values, context)

    @property
    def features(self) -> int:
        """Features per row."""
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

    @property
    def scaled_resolution(self) -> np.ndarray:
        """Rounding steps in scaled units, `(features,)`."""
        return self.resolution / self.scaling.scale

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
        columns = list(X.columns) if isinstance(X, pd.DataFrame) else None
        return replace(self, columns=columns, types=column_types(X))

    def name_features(self, owner: Any) -> None:
        """Set the attributes of `owner` that scikit-learn's `fit` sets."""
        owner.n_features_in_ = self.features
        if self.columns is not None and all(isinstance(name, str) for name in self.columns):
            owner.feature_names_in_ = np.array(self.columns, dtype=object)

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
            float64 tensors on the CPU.
        """
        values = _checked(owner, X, self.images, ensure_min_samples=min_rows, reset=False)
        return self.encoded(values, context)

    def encoded(self, values: np.ndarray, context: Any = None) -> Rows:
        """Convert checked values `(rows, features)` in the user's units, and their context."""
        return Rows(
            torch.from_numpy(self.scaling.apply(values)), self.encoded_context(context, len(values))
        )

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
        """Return which rows in scaled units leave the range of fit in a rounded column, `(rows,)`.

        Parameters
        ----------
        x : Tensor of shape (rows, features)
            Rows in scaled units.

        Returns
        -------
        Tensor
            A mask.
        """
        rows = np.zeros(len(x), dtype=bool)
        for column, values in zip(self.rounding, self.values(x).T, strict=False):
            rows |= column.outside(values)
        return torch.from_numpy(rows).to(x.device)

    def table(
        self, x: Tensor, rng: np.random.RandomState | None = None
    ) -> np.ndarray | pd.DataFrame:
        """Convert rows in scaled units to the form of fit's X.

        Parameters
        ----------
        x : Tensor of shape (rows, features)
            Rows in scaled units.
        rng : numpy.random.RandomState or None, default=None
            If given, values are rounded like those of fit and get their types; it decides which
            values of a partly rounded column are rounded.

        Returns
        -------
        numpy.ndarray or DataFrame
            A table, or an array of images.
        """
        if self.images is not None:
            return self.array(x)
        values = self.values(x)
        if rng is not None:
            each = zip(self.rounding, values.T, strict=True)
            values = np.stack([column.rounded(v, rng) for column, v in each], axis=1)
        table = values if self.columns is None else pd.DataFrame(values, columns=self.columns)
        if rng is None or self.types is None:
            return table
        return with_types(table, self.types, [(c.low, c.high) for c in self.rounding])

    def array(self, x: Tensor) -> np.ndarray:
        """Convert `(rows, features)` in scaled units to an array of rows or of images."""
        values = self.values(x)
        return values if self.images is None else self.images.unflatten(values)

    def file_parts(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the JSON content and the tensors that a model file holds of the schema."""
        content = {
            "columns": None if self.columns is None else [_plain(name) for name in self.columns],
            "context": None if self.context is None else self.context.plain(),
            "images": None if self.images is None else self.images.plain(),
            "rounding": [column.plain() for column in self.rounding],
            "types": None if self.types is None else list(self.types),
        }
        tensors = {
            "shift": torch.from_numpy(self.scaling.shift),
            "scale": torch.from_numpy(self.scaling.scale),
        }
        return content, tensors

    @classmethod
    def from_file(cls, content: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """Return the schema whose `file_parts` these are."""
        context, images = content["context"], content["images"]
        return cls(
            Scaling(tensors["shift"].numpy(), tensors["scale"].numpy()),
            tuple(Rounding.restored(column) for column in content["rounding"]),
            None if content["columns"] is None else [_label(name) for name in content["columns"]],
            None if context is None else Context.restored(context),
            None if images is None else ImageLayout(**images),
            None if content["types"] is None else tuple(content["types"]),
        )


def _plain(name: Any) -> Any:
    """Return a column label as JSON content."""
    if isinstance(name, tuple):
        return [_plain(part) for part in name]
    name = name.item() if isinstance(name, np.generic) else name
    check_label(name)
    return name


def _label(content: Any) -> Any:
    """Return the column label whose `_plain` content this is."""
    return tuple(map(_label, content)) if isinstance(content, list) else content


def _checked(owner: Any, X: Any, images: ImageLayout | None, **settings: Any) -> np.ndarray:
    check_channels(X)
    return checked_table(owner, X if images is None else images.flatten(X), **settings)
