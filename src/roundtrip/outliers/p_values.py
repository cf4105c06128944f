"""`PValues`: p-values of new rows from the scores of reference rows."""

from typing import Any

import numpy as np
from scipy.stats import ks_2samp
from sklearn.utils.validation import check_is_fitted

from roundtrip.exceptions import warn_user
from roundtrip.outliers.conformal import (
    conformal_p_value,
    discovered,
    fence,
    fewest_references,
    without_outliers,
)
from roundtrip.parameters import check_choice

REFERENCES = ("held-out", "trimmed", "model")

LARGEST_GAP, CHANCE = 0.2, 1e-3
"""Draws of the model replace held-out rows if the distribution functions of their scores differ by
less than this, or by no more than chance explains."""


class PValues:
    """p-values and discoveries by the scores of held-out rows or of draws from the density."""

    held_out_scores_: np.ndarray | None
    model_scores_: np.ndarray | None

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of each row, `(rows,)`.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`.
        """
        raise NotImplementedError

    def p_value(self, X: Any, *, reference: str | None = None) -> np.ndarray:
        """Probability that a usual row scores as low as each row or lower, `(rows,)`.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, none of them rows of `fit`.
        reference : {"held-out", "trimmed", "model"}, optional
            Rows that each row is ranked among. "held-out", the default, are rows of `fit` that
            training did not see. The p-value of a row of the same origin is then uniform, however
            good the density is, and at least 1 / (1 + held-out rows). Outliers among the held-out
            rows make p-values larger; "trimmed", which is approximate, replaces held-out rows
            below the fence of ``contamination="auto"`` by a tail estimated from the others.
            "model", the default after `from_density` and for single densities only, are draws from
            the fitted density: they contain no outliers, but are only as good as the fit. A warning
            says if their scores differ from those of held-out rows.
        """
        return conformal_p_value(self.score_samples(X), self.reference_scores(reference))

    def reference_scores(self, reference: str | None = None) -> np.ndarray:
        """Sorted scores that `p_value` ranks a row among, `(reference rows,)`.

        Parameters
        ----------
        reference : {"held-out", "trimmed", "model"}, optional
            As in `p_value`.
        """
        check_is_fitted(self, "held_out_scores_")
        if reference is None:
            reference = "model" if self.held_out_scores_ is None else "held-out"
        check_choice("reference", reference, REFERENCES)
        scores = self.model_scores_ if reference == "model" else self.held_out_scores_
        if scores is None and reference == "model":
            raise ValueError(
                'reference="model" compares rows with draws from one density, but this detector '
                'scores rows by every kind of oddity: use "held-out" or "trimmed"'
            )
        if scores is None:
            raise ValueError(
                "a detector made from a density has no held-out rows: leave out the reference, or "
                "fit a detector (RoundtripDetector.fit, roundtrip fit --outliers)"
            )
        if reference == "model" and self.held_out_scores_ is not None:
            _warn_of_gap(scores, self.held_out_scores_)
        return without_outliers(scores, fence(scores)) if reference == "trimmed" else scores

    def discoveries(self, X: Any, *, rate: float = 0.1, reference: str | None = None) -> np.ndarray:
        """Outliers among the rows of `X` at a given false-discovery rate, `(rows,)` of bool.

        Applies Benjamini and Hochberg's procedure to the p-values of these rows. To find k outliers
        in n rows it needs at least n / (k * rate) reference rows; a warning says if nothing is
        found and they are too few to name a single row.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, none of them rows of `fit`.
        rate : float, default=0.1
            Largest expected share of usual rows among those found.
        reference : {"held-out", "trimmed", "model"}, optional
            As in `p_value`. The default finds rows that are less likely than those of `fit`; if
            these contain as many outliers of the same kind, use "trimmed".
        """
        compared = self.reference_scores(reference)
        p_values = conformal_p_value(self.score_samples(X), compared)
        found = discovered(p_values, rate)
        needed = fewest_references(len(p_values), rate)
        if not found.any() and needed > len(compared):
            warn_user(
                f"{len(compared)} reference rows are too few to name a single outlier among "
                f"{len(p_values)} rows at rate={rate:g}, which takes {needed}: fit to more rows, "
                "ask for fewer at once, allow a higher rate, or use p_value"
            )
        return found


def _warn_of_gap(drawn: np.ndarray, held_out: np.ndarray) -> None:
    """Warn if the model draws rows whose scores are unlike those of held-out rows."""
    compared = ks_2samp(drawn, held_out, method="asymp")
    if compared.statistic > LARGEST_GAP and compared.pvalue < CHANCE:
        small = float((held_out <= np.quantile(drawn, 0.05)).mean())
        warn_user(
            f"reference='model' gives {small:.0%} of the held-out rows a p-value of at most 0.05: "
            "the model draws rows with other scores than those of fit, so that these p-values are "
            "not to be trusted; use reference='held-out', or 'trimmed' if many rows of fit are "
            "outliers"
        )
