"""`Explanation`: why rows are unlikely, in nats above the median of typical rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from roundtrip.density.surprise import surprise_given_others, surprise_parts
from roundtrip.model.core import RoundtripModel

TOL = 0.1
"""Standard error in nats; people read explanations, nothing is computed from them."""


@dataclass(frozen=True)
class Explanation:
    """Surprise -log p(x) of rows and its parts, in nats above their medians over typical rows.

    Attributes
    ----------
    surprise : numpy.ndarray
        `(rows,)`, surprise of the row. It is the sum of `residual` and `latent` up to a constant,
        as the median of each is subtracted separately.
    given_others : numpy.ndarray
        `(rows, features)`, surprise of each feature given the others, -log p(x_j | others): by this
        much the surprise of the row falls without the feature. It is largest for the feature that
        makes the row an outlier; NaN for missing cells.
    features : tuple of str
        Names of the features.
    index : pandas.Index or None
        Labels of the rows; None for 0, 1, ...
    residual : numpy.ndarray or None
        `(rows, features)`, distance from the manifold: how badly each feature fits what G
        generates from the most plausible codes; NaN for missing cells. None, like `latent`, for
        rows scored by every kind of oddity.
    latent : numpy.ndarray or None
        `(rows,)`, rarity of the code: how far out on the manifold the row lies.
    kind : tuple of str or None
        Kind of oddity of each row: "outside" of the data, "in a hole", "sparse place" or "broken
        combination"; None, like all that follows, for rows scored by one density alone.
    values : numpy.ndarray or None
        `(rows, features)`, the rows themselves.
    usual_low, usual_high : numpy.ndarray or None
        `(rows, features)`, ends of the range that nine tenths of the values of each feature have,
        given the others of the row.

    Examples
    --------
    >>> explanation = Explanation(
    ...     surprise=np.array([7.0]), given_others=np.array([[6.5, 0.2]]),
    ...     features=("height", "weight"), kind=("outside",), values=np.array([[230.0, 70.0]]),
    ...     usual_low=np.array([[160.0, 80.0]]), usual_high=np.array([[185.0, 120.0]]))
    >>> explanation.named(1)
    [['height']]
    >>> explanation.to_frame()[["surprise", "feature_1"]]
       surprise feature_1
    0       7.0    height
    >>> explanation.sentences(1)
    ['outside: height 230 where 160 to 185 is usual given the rest']
    """

    surprise: np.ndarray
    given_others: np.ndarray
    features: tuple[str, ...]
    index: pd.Index | None = None
    residual: np.ndarray | None = None
    latent: np.ndarray | None = None
    kind: tuple[str, ...] | None = None
    values: np.ndarray | None = None
    usual_low: np.ndarray | None = None
    usual_high: np.ndarray | None = None

    def named(self, count: int = 2) -> list[list[str]]:
        """Names of the most surprising features of each row, by `given_others`, largest first.

        Parameters
        ----------
        count : int, default=2
            Number of features per row.
        """
        return [[self.features[feature] for feature in row] for row in self._order(count)]

    def to_frame(self, count: int = 2) -> pd.DataFrame:
        """Table of the kind, the surprise, its parts and the most surprising features of each row.

        Parameters
        ----------
        count : int, default=2
            Number of features per row.
        """
        columns: dict[str, Any] = {} if self.kind is None else {"kind": self.kind}
        columns["surprise"] = self.surprise
        if self.residual is not None:
            columns["off_manifold"] = np.nansum(self.residual, axis=1)
            columns["rare_code"] = self.latent
        order = self._order(count)

        def chosen(array: np.ndarray, place: int) -> np.ndarray:
            return np.take_along_axis(array, order[:, [place]], axis=1)[:, 0]

        for place in range(order.shape[1]):
            columns[f"feature_{place + 1}"] = [self.features[row[place]] for row in order]
            columns[f"nats_{place + 1}"] = chosen(self.given_others, place)
            for name in ("values", "usual_low", "usual_high"):
                if (array := getattr(self, name)) is not None:
                    columns[f"{name.removesuffix('s')}_{place + 1}"] = chosen(array, place)
        return pd.DataFrame(columns, index=self.index)

    def sentences(self, count: int = 2) -> list[str]:
        """Explain each row in a sentence: its kind, and features with values that would be usual.

        Parameters
        ----------
        count : int, default=2
            Number of features per row.
        """
        frame = self.to_frame(count)
        return [self._sentence(row) for _, row in frame.iterrows()]

    def _sentence(self, row: pd.Series) -> str:
        parts = []
        for place in range(1, 1 + sum(name.startswith("feature_") for name in row.index)):
            part = str(row[f"feature_{place}"])
            if self.values is None:
                part += f" ({row[f'nats_{place}']:+.1f} nats)"
            else:
                low, high = row[f"usual_low_{place}"], row[f"usual_high_{place}"]
                value = _readable(row[f"value_{place}"])
                part += f" {value} where {_readable(low)} to {_readable(high)}"
            parts.append(part)
        text = ", ".join(parts)
        if self.values is not None:
            text += " is usual given the rest"
        return text if self.kind is None else f"{row['kind']}: {text}"

    def _order(self, count: int) -> np.ndarray:
        return np.argsort(-self.given_others, axis=1, kind="stable")[:, :count]


def _readable(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


@dataclass(frozen=True)
class Surprises:
    """Surprise -log p(x) of rows and its parts, in nats; fields as in `Explanation`."""

    total: np.ndarray
    residual: np.ndarray
    latent: np.ndarray
    given_others: np.ndarray

    @classmethod
    def of(
        cls, model: RoundtripModel, x: Tensor, typical: Tensor, *, seed: int, verbose: bool = False
    ) -> "Surprises":
        """Surprises under a model.

        Parameters
        ----------
        model : RoundtripModel
            The fitted model.
        x : Tensor
            `(rows, features)`.
        typical : Tensor
            `(features,)`, a typical value of each feature.
        seed : int
            Seed of the draws.
        verbose : bool, default=False
            Whether to show progress.
        """
        parts = surprise_parts(model, x, tol=TOL, seed=seed)
        given_others = surprise_given_others(model, x, typical, tol=TOL, seed=seed, verbose=verbose)
        missing = x.isnan()
        residual, given_others = (
            part.masked_fill(missing, torch.nan) for part in (parts.residual, given_others)
        )
        arrays = (parts.total, residual, parts.latent, given_others)
        return cls(*(array.cpu().numpy() for array in arrays))

    def above(
        self, usual: "Surprises", features: Sequence[str], index: pd.Index | None = None
    ) -> Explanation:
        """Surprises minus their medians over usual rows.

        Parameters
        ----------
        usual : Surprises
            Those of usual rows.
        features : sequence of str
            Names of the features.
        index : pandas.Index, optional
            Labels of the rows.
        """

        def excess(name: str) -> np.ndarray:
            return getattr(self, name) - np.nanmedian(getattr(usual, name), axis=0)

        return Explanation(
            surprise=excess("total"),
            residual=excess("residual"),
            latent=excess("latent"),
            given_others=excess("given_others"),
            features=tuple(features),
            index=index,
        )
