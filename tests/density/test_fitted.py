"""Samples whose cells must lie in a range."""

import numpy as np
import torch
from oracles import LinearModel
from sklearn.base import BaseEstimator

from roundtrip.data import Schema
from roundtrip.density.fitted import FittedDensity

ROWS, EDGE = 20_000, 1.5


def fitted(features):
    """z + noise in every column."""
    oracle = LinearModel(1, features, sigma=0.5)
    for parameter, value in (("weight", 1.0), ("bias", 0.0)):
        getattr(oracle.model.generator, parameter).data.fill_(value)
    schema, _ = Schema.fit(
        BaseEstimator(), np.array([[0.0], [1.0]]) * np.ones(features), None, scale=None
    )
    return FittedDensity(oracle.model.eval(), schema, 0)


def test_cells_outside_are_drawn_again_and_codes_stay():
    density = fitted(features=20)
    context = torch.empty(ROWS, 0, dtype=torch.float64)

    def drawn(edge):
        return density.sample(context, np.random.RandomState(0), outside=lambda x: x.abs() > edge)

    x, free = drawn(EDGE), drawn(np.inf)
    assert x.abs().max() <= EDGE
    # Means of rows are about their codes. Drawing whole rows again would leave but the middle ones.
    rows = free[(free.abs() <= EDGE).all(dim=1)]
    ours, theirs, of_rows = (float(each.mean(dim=1).std()) for each in (x, free, rows))
    assert of_rows < 0.45 * theirs
    assert ours > 0.6 * theirs


def test_rows_whose_code_leads_outside_are_drawn_anew():
    density = fitted(features=2)
    context = torch.empty(200, 0, dtype=torch.float64)
    x = density.sample(context, np.random.RandomState(0), outside=lambda x: x < 1.0)
    assert x.min() >= 1.0
