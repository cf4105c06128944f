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
    residual : numpy.ndarray
        `(rows, features)`, distance from the manifold: how badly each feature fits what G
        generates from the most plausible codes; NaN for missing cells.
    latent : numpy.ndarray
        `(rows,)`, rarity of the code: how far out on the manifold the row lies.
    given_others : numpy.ndarray
        `(rows, features)`, surprise of each feature given the others, -log p(x_j | others): by this
        much the surprise of the row falls without the feature. It is largest for the feature that
        makes the row an outlier; NaN for missing cells.
    features : tuple of str
        Names of the features.
    index : pandas.Index or None
        Labels of the rows; None for 0, 1, ...

    Examples
    --------
    >>> explanation = Explanation(
    ...     surprise=np.array([7.0]), residual=np.array([[5.0, 1.0]]), latent=np.array([1.0]),
    ...     given_others=np.array([[6.5, 0.2]]), features=("height", "weight"))
    >>> explanation.named(1)
    [['height']]
    >>> explanation.to_frame()[["surprise", "feature_1"]]
       surprise feature_1
    0       7.0    height
    """

    surprise: np.ndarray
    residual: np.ndarray
    latent: np.ndarray
    given_others: np.ndarray
    features: tuple[str, ...]
    index: pd.Index | None = None

    def named(self, count: int = 2) -> list[list[str]]:
        """Names of the most surprising features of each row, by `given_others`, largest first.

        Parameters
        ----------
        count : int, default=2
            Number of features per row.
        """
        order = np.argsort(-self.given_others, axis=1, kind="stable")[:, :count]
        return [[self.features[feature] for feature in row] for row in order]

    def to_frame(self, count: int = 2) -> pd.DataFrame:
        """Table of the surprise, its two parts and the most surprising features of each row.

        Parameters
        ----------
        count : int, default=2
            Number of features per row.
        """
        columns: dict[str, Any] = {
            "surprise": self.surprise,
            "off_manifold": np.nansum(self.residual, axis=1),
            "rare_code": self.latent,
        }
        largest = -np.sort(-self.given_others, axis=1)
        names = self.named(count)
        for place in range(min(count, len(self.features))):
            columns[f"feature_{place + 1}"] = [row[place] for row in names]
            columns[f"nats_{place + 1}"] = largest[:, place]
        return pd.DataFrame(columns, index=self.index)


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
