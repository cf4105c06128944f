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
