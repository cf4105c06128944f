"""Copies of rows are told from rows that are equal by chance."""

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

from roundtrip.data import Schema
from roundtrip.training.data import FittingData
from roundtrip.training.validation import Validation

rng = np.random.default_rng(0)
NORMAL = rng.normal(size=(200, 3))
WITH_HOLES = np.where(rng.random(NORMAL.shape) < [0, 0.1, 0.2], np.nan, NORMAL)
COPIED = {
    "five times": np.repeat(NORMAL, 5, axis=0),
    "rounded": np.repeat(NORMAL.round(3), 3, axis=0),
    "bootstrap": NORMAL[rng.integers(200, size=200)],
    "missing cells": np.repeat(WITH_HOLES, 2, axis=0),
    "a few": np.concatenate([NORMAL, NORMAL[:20]]),
}
BY_CHANCE = {
    "distinct": NORMAL,
    "coarse": rng.normal(size=(1000, 2)).round(1),
    "whole numbers": np.column_stack([rng.integers(90, size=1000), rng.integers(2, size=1000)]),
    "one column": rng.lognormal(3, 1, (1000, 1)).round(2),
    "prices": np.column_stack([rng.lognormal(3, 1, 1000).round(2), rng.integers(2, size=1000)]),
    "a spike": np.where(rng.random((500, 1)) < 0.5, 0, rng.normal(size=(500, 3))),
    "two levels": rng.integers(2, size=(300, 2)),
    "four": np.concatenate([NORMAL, NORMAL[:4]]),
}


def fitting_data(X):
    schema, rows = Schema.fit(BaseEstimator(), X, None, scale="standard")
    validation = Validation(fraction=0.1, rows=10_000)
    return FittingData.of(
        schema,
        rows,
        None,
        validation=validation,
        dequantize=True,
        rng=np.random.default_rng(0),
        device=torch.device("cpu"),
    )


def distinct(rows):
    return {row.tobytes() for row in rows.x.numpy()}


@pytest.mark.parametrize("name", COPIED)
@pytest.mark.parametrize("folds", [1, 5, 10])
def test_copies_are_on_one_side_of_every_split(name, folds):
    data = fitting_data(COPIED[name])
    assert len(data.training) + len(data.validation) == len(COPIED[name])
    for split in [data, *data.folds(folds)]:
        assert 0 < len(split.validation) < len(split.training)
        assert not distinct(split.validation) & distinct(split.training)
        assert len(split.training) + len(split.validation) == len(COPIED[name])


@pytest.mark.parametrize("name", BY_CHANCE)
def test_rows_that_are_equal_by_chance_are_split_as_ever(name):
    data = fitting_data(BY_CHANCE[name])
    assert data.copies is None
    assert len(data.validation) == round(0.1 * len(BY_CHANCE[name]))


def test_copies_do_not_flatter_validation():
    """Ten times the same rows: held-out rows are not likelier than rows of the same origin."""
    from roundtrip import Roundtrip

    est = Roundtrip(max_epochs=30, random_state=0).fit(np.repeat(NORMAL[:60], 10, axis=0))
    fresh = est.score(np.random.default_rng(1).normal(size=(300, 3)))
    assert max(est.history_["validation_log_likelihood"]) < fresh + 0.7
