"""Draws of the model as the reference of p-values."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from roundtrip.outliers.p_values import PValues


class Scored(PValues, BaseEstimator):
    """Scores rows of one number by that number."""

    def fit(self, model, held_out):
        self.model_scores_ = np.sort(model)
        self.held_out_scores_ = None if held_out is None else np.sort(held_out)
        return self

    def score_samples(self, X):
        return np.asarray(X, dtype=float)[:, 0]


def test_draws_unlike_the_held_out_rows_are_warned_of():
    rng = np.random.default_rng(0)
    drawn, held_out = rng.normal(size=2000), rng.normal(size=400) - 1.0
    with pytest.warns(UserWarning, match=r"gives 2\d% of the held-out rows a p-value of at most"):
        Scored().fit(drawn, held_out).p_value([[0.0]], reference="model")
    with pytest.warns(UserWarning, match="use reference='held-out'"):
        Scored().fit(drawn, held_out).discoveries([[0.0]], reference="model")


@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_draws_like_the_held_out_rows_are_not(outliers):
    rng = np.random.default_rng(1)
    drawn, held_out = rng.normal(size=2000), rng.normal(size=400)
    held_out[: int(outliers * 400)] -= 20
    Scored().fit(drawn, held_out).p_value([[0.0]], reference="model")  # a warning were an error
    Scored().fit(drawn, held_out - 1.0).p_value([[0.0]], reference="held-out")
    Scored().fit(drawn, None).p_value([[0.0]])
