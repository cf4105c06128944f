"""Tables of every library and type go in and come out as what they were."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from polars.testing import assert_frame_equal
from sklearn.base import BaseEstimator

from roundtrip.data import Schema
from roundtrip.data.table_format import TableFormat

N = 60
DAYS = pd.date_range("2020-02-01", periods=N)
rng = np.random.default_rng(0)
LETTERS, WHOLE, FLAGS = rng.choice(list("abc"), N), rng.integers(9, size=N), rng.random(N) < 0.5
DURATIONS = pd.to_timedelta(rng.integers(100, size=N), unit="min")

COLUMNS = {
    "float64": pd.Series(rng.normal(size=N)),
    "float32": pd.Series(rng.normal(size=N).astype(np.float32)),
    "Float64": pd.Series(rng.normal(size=N)).astype("Float64"),
    "Int64": pd.Series(WHOLE).astype("Int64"),
    "UInt8": pd.Series(WHOLE).astype("UInt8"),
    "int64[pyarrow]": pd.Series(WHOLE).astype("int64[pyarrow]"),
    "str": pd.Series(LETTERS),
    "string": pd.Series(LETTERS).astype("string"),
    "object": pd.Series(LETTERS).astype(object),
    "category": pd.Series(pd.Categorical(LETTERS, categories=list("zcba"))),
    "ordered": pd.Series(pd.Categorical(LETTERS, categories=list("zcba"), ordered=True)),
    "category of numbers": pd.Series(pd.Categorical(WHOLE)),
    "boolean": pd.Series(FLAGS).astype("boolean"),
    "object of bools": pd.Series(FLAGS).astype(object),
    "days": pd.Series(DAYS),
    "nanoseconds": pd.Series(DAYS).astype("datetime64[ns]"),
    "time zone": pd.Series(DAYS.tz_localize("Europe/Berlin")),
    "hours": pd.Series(pd.date_range("2020-02-01", periods=N, freq="h")),
    "timestamp[us][pyarrow]": pd.Series(DAYS).astype("timestamp[us][pyarrow]"),
    "date objects": pd.Series(DAYS.date, dtype=object),
    "timedelta64": pd.Series(DURATIONS),
}


def there_and_back(table, **settings):
    owner = BaseEstimator()
    schema, rows = Schema.fit(owner, table, None, scale="standard", **settings)
    assert rows.x.dtype == torch.float64
    saved = Schema.from_file(*schema.file_parts())
    np.testing.assert_array_equal(saved.rows(owner, table).x, rows.x)
    return saved.table(rows.x, np.random.RandomState(0)), schema, rows


@pytest.mark.parametrize("missing", ["ignore", "model", None], ids=["ignore", "model", "complete"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_of_pandas(name, missing):
    cells = COLUMNS[name]
    cells = cells if missing is None else cells.mask(np.arange(N) % 5 == 2)
    frame = pd.DataFrame({"x": np.arange(N) / 7, "cells": cells})
    back, schema, rows = there_and_back(frame, missing=missing or "ignore")
    if cells.dtype == object:  # None, NaN, ...: all are missing
        back, frame = back.astype(object), frame.astype(object)
        back, frame = (each.where(each.notna(), None) for each in (back, frame))
    pd.testing.assert_frame_equal(back, frame)
    assert rows.x.shape == (N, 3 if missing == "model" else 2)
    assert schema.incomplete.tolist() == [False, missing is not None, False][: schema.features]
    assert schema.n_columns == 2


@pytest.mark.parametrize("kind", ["int64", "bool"])
def test_numpys_whole_numbers_and_booleans(kind):
    frame = pd.DataFrame({"x": np.arange(N) / 7, "cells": (WHOLE % 2).astype(kind)})
    pd.testing.assert_frame_equal(there_and_back(frame)[0], frame)


POLARS = {
    "f": pl.Float64,
    "f32": pl.Float32,
    "i": pl.Int16,
    "u": pl.UInt32,
    "s": pl.String,
    "c": pl.Categorical,
    "e": pl.Enum(list("zabc")),
    "b": pl.Boolean,
    "d": pl.Date,
    "t": pl.Datetime("us"),
    "z": pl.Datetime("ms", "Europe/Berlin"),
    "l": pl.Duration("us"),
}


def polars_table(gaps):
    def cells(values):
        return [None if gaps and row % 5 == 2 else each for row, each in enumerate(values)]

    times = [each.to_pydatetime() for each in DAYS]
    zoned = [each.replace(tzinfo=datetime.UTC) for each in times]
    values = {
        "f": rng.normal(size=N).tolist(),
        "f32": np.arange(N).tolist(),
        "i": WHOLE.tolist(),
        "u": WHOLE.tolist(),
        "s": LETTERS.tolist(),
        "c": LETTERS.tolist(),
        "e": LETTERS.tolist(),
        "b": FLAGS.tolist(),
        "d": [each.date() for each in times],
        "t": times,
        "z": zoned,
        "l": DURATIONS.to_pytimedelta().tolist(),
    }
    series = [pl.Series("x", np.arange(N) / 7)]
    return pl.DataFrame(
        series + [pl.Series(name, cells(each), dtype=POLARS[name]) for name, each in values.items()]
    )


@pytest.mark.parametrize("missing", ["ignore", "model"])
@pytest.mark.parametrize("gaps", [False, True])
def test_polars(gaps, missing):
    table = polars_table(gaps)
    back, schema, _ = there_and_back(table, missing=missing)
    assert isinstance(back, pl.DataFrame)
    assert_frame_equal(back, table)
    kinds = [column.kind for column in schema.described().values()]
    assert kinds == ["number"] * 5 + ["category"] * 4 + ["date"] * 3 + ["duration"]
    assert schema.features == schema.n_columns + len(POLARS) * (gaps and missing == "model")


@pytest.mark.parametrize("gaps", [False, True])
def test_pyarrow(gaps):
    table = polars_table(gaps).drop("e").to_arrow()
    back, _, _ = there_and_back(table)
    assert isinstance(back, pa.Table)
    assert back.schema.types == table.schema.types
    assert_frame_equal(pl.from_arrow(back), pl.from_arrow(table))


def test_a_lazy_table_is_refused():
    with pytest.raises(ValueError, match=r"lazy.*collect"):
        Schema.fit(BaseEstimator(), polars_table(False).lazy(), None, scale=None)


def test_arrays_of_objects_and_lists():
    table = [["a", 1.5], ["b", None], ["a", 3]] * 3
    for X in (table, np.array(table, dtype=object)):
        back, schema, rows = there_and_back(X)
        assert [column.kind for column in schema.described().values()] == ["category", "number"]
        assert list(schema.described()) == [0, 1]
        assert back[0].tolist() == ["a", 1.5]
        assert np.isnan(back[1, 1])
        assert rows.x[:, 0].tolist() == [0, 1, 0] * 3
    text = np.array([["a", "b"], ["b", "b"]])
    np.testing.assert_array_equal(there_and_back(text)[0], text)


def test_columns_of_an_array_may_be_categories():
    X = np.stack([np.arange(N) / 7, WHOLE], axis=1)
    back, schema, rows = there_and_back(X, columns={1: "category"})
    np.testing.assert_allclose(back, X, atol=1e-12)
    assert schema.is_category.tolist() == [False, True]
    assert rows.x[:, 1].max() == len(np.unique(WHOLE)) - 1
    again = schema.rows(BaseEstimator(), np.array([[1.0, 77.0]]))
    assert schema.unseen(again.x).tolist() == [[False, True]]


def test_repeated_names_are_refused():
    frame = pd.DataFrame(np.ones((3, 2)), columns=["a", "a"])
    with pytest.raises(ValueError, match="several columns named 'a'; rename"):
        TableFormat.learned(frame, None)
    with pytest.raises(ValueError, match="several columns named 'a'; rename"):
        TableFormat.learned(pa.Table.from_arrays([[1.0], [2.0]], names=["a", "a"]), None)


def test_labels_of_a_warm_start_are_those_of_the_new_table():
    schema, rows = Schema.fit(BaseEstimator(), polars_table(False), None, scale=None)
    frame = polars_table(False).to_pandas().rename(columns=str.upper)
    again = schema.with_columns_of(frame)
    table = again.table(rows.x, np.random.RandomState(0))
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == list(frame.columns)


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_draws_that_are_not_rounded_keep_levels_and_dates(scale):
    table = polars_table(True)
    schema, rows = Schema.fit(BaseEstimator(), table, None, scale=scale)
    numbers = torch.from_numpy(~schema.is_category)
    x = torch.where(numbers, rows.x + 0.01, rows.x)
    back = schema.table(x)
    assert back["i"].dtype == pl.Float64
    assert back["s"].to_list() == table["s"].to_list()
    assert back["d"].null_count() == table["d"].null_count()
    assert schema.values(x).shape == (N, schema.features)
