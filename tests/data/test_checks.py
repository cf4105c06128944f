import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from roundtrip.data import Schema
from roundtrip.data.checks import checked_table


@pytest.fixture
def frame():
    return pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}, index=["x", "y", "z"])


def with_cell(frame, value):
    frame = frame.astype(object)
    frame.loc["y", "b"] = value
    return frame


@pytest.mark.parametrize("value", [np.nan, np.inf, "hello", None])
def test_errors_name_column_row_and_value(frame, value):
    bad = with_cell(frame, value)
    with pytest.raises(ValueError, match=rf"in columns b; first in row y: {value!r}\)"):
        checked_table(BaseEstimator(), bad)
    with pytest.raises(ValueError, match=rf"in columns 1; first in row 1: {value!r}\)"):
        checked_table(BaseEstimator(), bad.to_numpy())


def test_many_bad_columns_are_abbreviated():
    with pytest.raises(ValueError, match=r"in columns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \.\.\.; first"):
        checked_table(BaseEstimator(), np.full((3, 50), np.nan))


def test_unseen_and_missing_columns_are_named(frame):
    owner = BaseEstimator()
    checked_table(owner, frame)
    with pytest.raises(ValueError, match=r"^unseen columns: c\n"):
        checked_table(owner, frame.assign(c="text"), reset=False)
    with pytest.raises(ValueError, match=r"^unseen columns: c; missing columns: a\n"):
        checked_table(owner, frame.rename(columns={"a": "c"}), reset=False)


def test_images_without_a_channel_are_told_to_add_one():
    with pytest.raises(ValueError, match=r"add a channel, X\[..., None\]"):
        Schema.fit(BaseEstimator(), np.zeros((5, 8, 8)), None, scale=None)
    images = np.random.default_rng(0).random((5, 8, 8))
    schema, _ = Schema.fit(BaseEstimator(), images[..., None], None, scale=None)
    with pytest.raises(ValueError, match=r"add a channel, X\[..., None\]"):
        schema.rows(BaseEstimator(), images)
