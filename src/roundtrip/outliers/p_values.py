"""`PValues`: what a detector says about new rows by comparing their scores with others."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from roundtrip.outliers.conformal import conformal_p_value, discovered, fence, without_outliers
from roundtrip.parameters import check_choice

REFERENCES = ("held-out", "trimmed", "model")


class PValues:
    """p-values and discoveries from the scores of held-out rows and of draws."""

    held_out_scores_: np.ndarray | None
    model_scores_: np.ndarray

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of each row, `(rows,)`; the detector's own."""
        raise NotImplementedError

    def p_value(self, X: Any, *, reference: str | None = None) -> np.ndarray:
        """How probable a row at least as odd is, `(rows,)`.

        Parameters
        ----------
        X : `(rows, features)`, none of them of `fit`, which is where the comparison is from.
        reference : what each row is ranked among. "held-out", the default: rows of `fit` that
            training did not see. For rows of the same origin the p-value is then uniform whatever
            the density is worth, and at least 1 / (1 + held-out rows). If `fit` had outliers, so
            has the reference: p-values are then relative to those, and larger. "trimmed": held-out
            rows with those beyond a fence, set as ``contamination="auto"`` does, replaced by a tail
            that the others suggest, for such data; approximate. "model": draws from the fitted
            density, which hold no outliers, but are only as good as the fit; the default of
            `from_density`.
        """
        return conformal_p_value(self.score_samples(X), self.reference_scores(reference))

    def reference_scores(self, reference: str | None = None) -> np.ndarray:
        """The sorted scores that `p_value` ranks a row among, `(reference rows,)`."""
        check_is_fitted(self, "model_scores_")
        if reference is None:
            reference = "model" if self.held_out_scores_ is None else "held-out"
        check_choice("reference", reference, REFERENCES)
        scores = self.model_scores_ if reference == "model" else self.held_out_scores_
        if scores is None:
            raise ValueError(
                "a detector made from a density has no held-out rows: leave out the reference, or "
                "fit a detector (RoundtripDetector.fit, roundtrip fit --outliers)"
            )
        return without_outliers(scores, fence(scores)) if reference == "trimmed" else scores

    def discoveries(self, X: Any, *, rate: float = 0.1, reference: str | None = None) -> np.ndarray:
        """Which rows of `X` are outliers if, on average, at most a share `rate` may be none.

        Benjamini and Hochberg's procedure on the p-values of this batch: `(rows,)` of bool. With
        the default reference it names rows that are odder than those of `fit`; if those had
        outliers of the same kind in the same share, it names none: use ``reference="trimmed"``.
        To name k rows of n it needs at least n / (k * rate) held-out rows.
        """
        return discovered(self.p_value(X, reference=reference), rate)
