"""`Explanation`: why rows are unlikely, in nats above what is typical, for people to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from roundtrip.density.surprise import surprise_given_others, surprise_parts
from roundtrip.model.core import RoundtripModel

TOL = 0.1
"""Nats; explanations are read, not computed with."""


@dataclass(frozen=True)
class Explanation:
    """The surprise -log p(x) of rows and where it comes from, each in nats above its median over
    typical rows.

    Attributes
    ----------
    surprise : `(rows,)`, of the row as a whole. It is the sum of `residual` and `latent` but for
        the medians, which are each taken by themselves.
    residual : `(rows, features)`, from leaving the manifold: how badly each feature fits what G
        makes of the most plausible codes.
    latent : `(rows,)`, from a rare code: how far out on the manifold the row lies.
    given_others : `(rows, features)`, of each feature if the others are known, -log p(x_j | rest):
        so much less surprising the row would be if nobody had looked at the feature. The feature
        that carries an oddity is the one where this is largest.
    features : names of the features.
    index : labels of the rows, or None: 0, 1, ...

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
        """The features that carry the surprise of each row, the first one most."""
        order = np.argsort(-self.given_others, axis=1, kind="stable")[:, :count]
        return [[self.features[feature] for feature in row] for row in order]

    def to_frame(self, count: int = 2) -> pd.DataFrame:
        """One row each: the surprise, its two parts, and the `count` features that carry it."""
        columns: dict[str, Any] = {
            "surprise": self.surprise,
            "off_manifold": self.residual.sum(axis=1),
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
    """The parts of -log p(x) of rows before anything is compared: `(rows,)`, `(rows, features)`."""

    total: np.ndarray
    residual: np.ndarray
    latent: np.ndarray
    given_others: np.ndarray

    @classmethod
    def of(
        cls, model: RoundtripModel, x: Tensor, typical: Tensor, *, seed: int, verbose: bool = False
    ) -> "Surprises":
        """Compute them for `(rows, features)` points; `typical` are usual values of features."""
        parts = surprise_parts(model, x, tol=TOL, seed=seed)
        given_others = surprise_given_others(model, x, typical, tol=TOL, seed=seed, verbose=verbose)
        arrays = (parts.total, parts.residual, parts.latent, given_others)
        return cls(*(array.cpu().numpy() for array in arrays))

    def above(
        self, usual: "Surprises", features: Sequence[str], index: pd.Index | None = None
    ) -> Explanation:
        """What exceeds the medians of usual rows."""

        def excess(name: str) -> np.ndarray:
            return getattr(self, name) - np.median(getattr(usual, name), axis=0)

        return Explanation(
            surprise=excess("total"),
            residual=excess("residual"),
            latent=excess("latent"),
            given_others=excess("given_others"),
            features=tuple(features),
            index=index,
        )
