import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator

from roundtrip.data import Schema


def fitted(X, **settings):
    return Schema.fit(BaseEstimator(), X, None, **({"scale": "standard"} | settings))


@pytest.fixture
def frame(rng):
    n = 400
    return pd.DataFrame(
        {
            "count": rng.poisson(2, size=n),
            "flag": rng.random(n) < 0.2,
            "code": rng.integers(2, size=n).astype(float),
            "tenths": np.round(rng.normal(size=n), 1).astype(np.float32),
            "exact": rng.normal(size=n),
            "constant": np.full(n, 7),
            "nullable": pd.array(rng.integers(5, size=n), dtype="Int16"),
            "wide": rng.integers(-(10**12), 10**12, size=n),
        }
    )


def test_samples_look_like_the_table(frame, rng):
    schema, rows = fitted(frame)
    far = rows.x + 3 * torch.from_numpy(rng.normal(size=rows.x.shape))
    far[:, schema.is_category] = rows.x[:, schema.is_category]  # places of levels
    table = schema.table(far, np.random.RandomState(0))
    assert table.dtypes.tolist() == frame.dtypes.tolist()
    for name in frame:
        if name not in ("exact", "wide"):
            assert table[name].between(frame[name].min(), frame[name].max()).all()
    assert set(table["code"]) == {0.0, 1.0}
    assert table["flag"].nunique() == 2
    assert (table["constant"] == 7).all()
    np.testing.assert_array_equal(
        table["tenths"], np.round(table["tenths"].astype(float), 1).astype(np.float32)
    )
    np.testing.assert_allclose(table["exact"], schema.table(far)["exact"])
    spread = schema.table(far)  # without rounding
    assert spread.pop("flag").dtype == bool
    assert (spread.dtypes == np.float64).all()


@pytest.mark.parametrize("kind", ["int64", "uint8", "bool", "float32", "float64", "int16"])
def test_arrays_keep_their_type(kind, rng):
    X = rng.integers(2, size=(100, 2)).astype(kind)
    schema, rows = fitted(X)
    table = schema.table(rows.x + 0.1, np.random.RandomState(0))
    assert table.dtype == X.dtype
    np.testing.assert_array_equal(table, X)


def test_widths_are_per_cell_only_if_columns_are_partly_rounded(rng):
    X = np.stack([rng.normal(size=300), np.rint(3 * rng.normal(size=300))], axis=1)
    schema, rows = fitted(X)
    assert schema.spread_widths(rows.x).shape == (2,)
    X[:200, 0] = np.rint(9 * X[:200, 0])
    schema, rows = fitted(X)
    widths = schema.spread_widths(rows.x).numpy() * schema.scaling.scale
    np.testing.assert_allclose(widths[:, 1], 1)
    np.testing.assert_allclose(widths[:, 0], [1] * 200 + [0] * 100)


def test_schemas_survive_files(frame):
    schema, rows = fitted(frame)
    again = Schema.from_file(*schema.file_parts())
    assert again.rounding == schema.rounding
    assert (again.form, again.kinds) == (schema.form, schema.kinds)
    tables = [each.table(rows.x, np.random.RandomState(0)) for each in (again, schema)]
    pd.testing.assert_frame_equal(*tables)


@pytest.fixture
def gaps(rng):
    n = 300
    return pd.DataFrame(
        {
            "size": np.where(np.arange(n) % 4 == 1, np.nan, rng.normal(3, 5, size=n)),
            "job": np.where(np.arange(n) % 3, rng.choice(["smith", "baker"], n), None),
            "age": rng.integers(80, size=n),
            "day": pd.date_range("2024-01-01", periods=n),
        },
        index=[f"r{i}" for i in range(n)],
    )


@pytest.mark.parametrize("scale", ["standard", "minmax", None])
def test_units_come_from_observed_cells(gaps, scale):
    schema, rows = fitted(gaps, scale=scale)
    observed = gaps["size"].dropna().to_numpy()[:, None]
    alone, _ = fitted(observed, scale=scale)
    assert schema.scaling.shift[0] == pytest.approx(alone.scaling.shift[0])
    assert schema.scaling.scale[0] == pytest.approx(alone.scaling.scale[0])
    assert (schema.scaling.shift[1], schema.scaling.scale[1]) == (0, 1)
    assert [each.step for each in schema.rounding] == [0, 0, 1, 1]
    assert torch.isnan(rows.x).numpy().tolist() == gaps.isna().to_numpy().tolist()
    assert schema.incomplete.tolist() == [True, True, False, False]
    assert schema.is_category.tolist() == [False, True, False, False]
    assert schema.is_mixed
    assert set(rows.x[:, 1].numpy()[~np.isnan(rows.x[:, 1].numpy())]) == {0, 1}


def test_missing_cells_are_the_same_to_the_last_bit(gaps):
    odd = np.frombuffer(np.uint64(0xFFF8000000000001).tobytes(), dtype=np.float64)
    X = np.array([[1.0, odd[0]], [2.0, 3.0], [5.0, 4.0]])
    assert X.view(np.uint64)[0, 1] == 0xFFF8000000000001
    _, rows = fitted(X)
    assert rows.x.numpy().view(np.uint64)[0, 1] == np.array([np.nan]).view(np.uint64)[0]


def test_log_dets_count_observed_numbers(gaps):
    schema, rows = fitted(gaps)
    logs = np.log(schema.scaling.scale)
    missing = gaps["size"].isna()
    expected = np.where(missing, -logs[2:].sum(), -logs.sum())
    np.testing.assert_allclose(schema.log_dets(rows.x), expected)
    complete, rows = fitted(gaps[["age"]])
    assert (complete.log_dets(rows.x) == complete.log_det).all()
    assert not complete.is_mixed


def test_the_pattern_of_missing_cells_is_part_of_the_rows(gaps):
    schema, rows = fitted(gaps, missing="model")
    assert (schema.features, schema.n_columns) == (6, 4)
    assert rows.x[:, 4].tolist() == gaps["size"].isna().tolist()
    assert rows.x[:, 5].tolist() == gaps["job"].isna().tolist()
    assert [column.levels for column in schema.kinds[4:]] == [(False, True)] * 2
    assert [column.reserved for column in schema.kinds[4:]] == [0, 0]
    assert schema.kinds[4].frequencies == pytest.approx((0.75, 0.25))
    assert schema.incomplete.tolist() == [True, True, False, False, False, False]
    assert list(schema.described()) == list(gaps.columns)
    # The indicators decide, whatever was drawn for the cell.
    x = torch.nan_to_num(rows.x, nan=1e6)
    assert not schema.outside(x[:, :]).any()
    assert schema.table(x, np.random.RandomState(0)).isna().to_numpy().tolist() == (
        gaps.isna().to_numpy().tolist()
    )
    # A column that was complete in fit has no indicator.
    new = gaps.assign(age=np.nan)
    again = schema.rows(BaseEstimator(), new.to_numpy(dtype=object)).x
    assert again.shape == rows.x.shape
    assert torch.isnan(again[:, 2]).all()


def test_unseen_levels_are_marked(gaps):
    schema, _ = fitted(gaps)
    new = gaps.iloc[:3].assign(job=["smith", "pilot", None])
    rows = schema.rows(BaseEstimator(), new.to_numpy(dtype=object))
    assert schema.unseen(rows.x).tolist() == [[False] * 4, [False, True, False, False], [False] * 4]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "old"}, "^column 'age': fit had numbers, but row r0 has 'old'"),
        ({"job": 3}, "^column 'job': fit had text, but row r0 has 3"),
        ({"day": "soon"}, "^column 'day': row r0 has 'soon', which is not a date"),
        ({"day": 3}, "^column 'day': row r0 has 3, which is not a date"),
        ({"size": np.inf}, r"infinity.* \(in columns size; first in row r0: inf\)"),
        ({"new": 1}, "^unseen columns: new"),
    ],
)
def test_rows_unlike_those_of_fit_are_refused(gaps, change, message):
    owner = BaseEstimator()
    schema, _ = Schema.fit(owner, gaps, None, scale="standard")
    with pytest.raises(ValueError, match=message):
        schema.rows(owner, gaps.assign(**change))
    with pytest.raises(ValueError, match="same order"):
        schema.rows(owner, gaps[gaps.columns[::-1]])


def test_rows_without_an_observed_cell_are_named_in_fit(gaps):
    empty = gaps.astype(object)
    empty.loc[["r7", "r9"]] = None
    with pytest.raises(ValueError, match=r"^2 rows have no observed cell, .*: r7, r9; drop them"):
        fitted(empty)
    with pytest.raises(ValueError, match=r"^1 row has no observed cell, .*: 1; drop it"):
        fitted([[1.0], [np.nan], [3.0]])


@pytest.mark.parametrize("cells", [[7.0, None, 7.0], ["a", None, "a"], [True, None, True]])
def test_a_column_may_be_constant_but_for_missing_cells(cells):
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "c": cells})
    schema, rows = fitted(frame)
    table = schema.table(rows.x, np.random.RandomState(0))
    assert table["c"].isna().tolist() == [False, True, False]
    assert table["c"][0] == cells[0]


def test_complete_numbers_are_no_mixed_table(frame):
    schema, _ = fitted(frame.drop(columns="flag"))
    assert not schema.is_mixed
    assert schema.has_only_numbers
    assert not schema.incomplete.any()
    assert {column.kind for column in schema.kinds} == {"number"}
    images = np.random.default_rng(0).random((5, 4, 4, 1))
    schema, rows = fitted(images)
    assert (schema.kinds, schema.described(), schema.is_mixed) == ((), {}, False)
    assert not schema.unseen(rows.x).any()


@pytest.mark.parametrize("missing", ["ignore", "model"])
@pytest.mark.parametrize("hole", [np.nan, 5.0])
def test_rows_without_any_observed_cell_are_refused_in_scoring_too(missing, hole):
    table = pd.DataFrame({"size": [1.0, 2.0, hole], "job": ["a", "b", "a"]})
    owner = BaseEstimator()
    schema, _ = Schema.fit(owner, table, None, scale=None, missing=missing)
    schema.name_features(owner)
    new = pd.DataFrame(
        {"size": [1.0, np.nan, np.nan], "job": ["a", None, "b"]}, index=["r1", "r2", "r3"]
    )
    with pytest.raises(ValueError, match=r"^1 row has no observed cell, .*: r2; drop it"):
        schema.rows(owner, new)
    assert schema.rows(owner, new.drop("r2")).x.isnan().sum() == 1


@pytest.mark.parametrize("gap", [1.0, None])
def test_messages_about_ranges_name_the_column(gap):
    table = pd.DataFrame({"fine": [gap, 2.0, 3.0], "far": [-1e308, 0.5, 1e308]})
    with pytest.raises(ValueError, match=r"columns \['far'\] span a range too wide"):
        fitted(table)
    with pytest.raises(ValueError, match=r"columns \[1\] span a range too wide"):
        fitted(table.to_numpy())
