"""What a context may be, and how it becomes numbers."""

import numpy as np
import pandas as pd
import pytest

from roundtrip.data.context import Context


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([3, 1, 3], (1, 3)),
        (np.array(["b", "a"]), ("a", "b")),
        (pd.Series(["b", "a"], dtype="category"), ("a", "b")),
        ([True, False], (False, True)),
        ([("x", 1), ("x", 0)], (("x", 0), ("x", 1))),
        ([1, "one"], (1, "one")),
        (np.array([1.0, 2.0]), (1.0, 2.0)),
    ],
)
def test_labels_may_be_anything_hashable(values, labels):
    context = Context.fit(values)
    assert context.labels == labels
    assert context.encode(values, len(values)).sum() == len(values)


def test_columns_of_a_context_go_by_name():
    frame = pd.DataFrame({"a": [0.5, 1.5], "b": [7.0, 9.0]})
    context = Context.restored(Context.fit(frame).plain())
    np.testing.assert_array_equal(
        context.encode(frame[["b", "a"]], 2), context.encode(frame.to_numpy(), 2)
    )
    with pytest.raises(ValueError, match="columns 'a', 'c', but in fit it had 'a', 'b'"):
        context.encode(frame.rename(columns={"b": "c"}), 2)


def test_numbers_with_fractions_and_tables_are_covariates():
    assert Context.fit([0.5, 1.0]).labels is None
    assert Context.fit([0, 0.5, 1]).labels is None
    assert Context.fit(np.ones((3, 2))).width == 2
    years = np.array([[1990], [2010], [2011]])
    for kind in (np.int64, np.uint16, np.float32):
        assert Context.fit(years.astype(kind)).width == 1
    assert Context.fit(years[:, 0]).width == 3
    assert Context.fit(np.array([["a"], ["b"]])).labels == ("a", "b")
    with pytest.raises(ValueError, match="missing values"):
        Context.fit(pd.Series(["a", pd.NA]))
    with pytest.raises(ValueError, match="missing or infinite"):
        Context.fit([0.5, np.nan])


def test_one_row_of_several_covariates_may_be_flat(rng):
    context = Context.fit(rng.normal(size=(20, 2)))
    expected = context.encode([[0.1, 2.0]] * 3, 3)
    np.testing.assert_array_equal(context.encode([0.1, 2.0], 3), expected)
    np.testing.assert_array_equal(context.encode(np.array([0.1, 2.0]), 3), expected)
    with pytest.raises(ValueError, match="context has 3 columns, but it had 2 in fit"):
        context.encode([0.1, 2.0, 3.0], 3)
    single = Context.fit(rng.normal(size=(20, 1)))
    assert single.encode([0.1, 2.0], 2).shape == (2, 1)  # of one covariate, a value per row


def test_labels_that_number_the_rows_are_refused():
    with pytest.raises(ValueError, match=r"300 different labels in 300 rows.*shape \(rows, 1\)"):
        Context.fit(np.arange(300))
    assert Context.fit(np.arange(5)).width == 5  # too few rows to tell
    assert Context.fit(np.arange(300)[:, None]).labels is None


def test_bad_covariates_are_named_with_their_place():
    table = np.ones((5, 2))
    table[3, 1] = np.nan
    with pytest.raises(ValueError, match="nan in row 3, column 1"):
        Context.fit(table)
