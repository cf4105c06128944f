"""Tables that were once read wrongly without a word: masks, labels and very large whole numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from roundtrip import RoundtripClassifier, RoundtripDetector
from roundtrip.baselines import KDE
from roundtrip.data import Schema
from roundtrip.data.context import Context
from roundtrip.data.kinds import NumberColumn
from roundtrip.outliers.default_density import default_density

N = 30
LARGE = 2**63 - 1 - np.arange(N)
CELLS = np.arange(2.0 * N).reshape(N, 2)
MASK = np.zeros((N, 2), dtype=bool)
MASK[3, 1] = MASK[5, 0] = True


def learned(table, **settings):
    owner = BaseEstimator()
    return (owner, *Schema.fit(owner, table, None, scale="standard", **settings))


def labelled(*labels):
    frame = pd.DataFrame(CELLS)
    frame.columns = pd.Index(labels, tupleize_cols=False)
    return frame


@pytest.mark.parametrize("dtype", ["float64", "int64", "object", "datetime64[D]"])
def test_masked_cells_are_missing(dtype):
    cells = CELLS.astype("int64").astype(dtype)
    masked = np.ma.masked_array(cells, mask=MASK)
    cells[MASK] = np.array(10**6).astype(dtype)  # what is under the mask does not matter
    owner, schema, rows = learned(masked)
    np.testing.assert_array_equal(rows.x.isnan().numpy(), MASK)
    np.testing.assert_array_equal(schema.rows(owner, masked).x, rows.x)
    np.testing.assert_allclose(schema.scaling.scale.max(), CELLS[:, 0].std(), rtol=0.1)


def test_a_mask_without_masked_cells_changes_nothing():
    _, schema, rows = learned(np.ma.masked_array(CELLS, mask=False))
    assert schema.has_only_numbers
    np.testing.assert_array_equal(rows.x, learned(CELLS)[2].x)


def test_masks_are_refused_where_nothing_may_be_missing():
    context = np.ma.masked_array(np.arange(N) % 2, mask=MASK[:, 0])
    with pytest.raises(ValueError, match="context has masked values"):
        Context.fit(context)
    with pytest.raises(ValueError, match="context has masked values"):
        Context.fit(np.arange(N) % 2).encode(context, N)
    with pytest.raises(ValueError, match="y has masked values"):
        RoundtripClassifier().fit(CELLS, context)
    with pytest.raises(ValueError, match="NaN"):
        KDE().fit(np.ma.masked_array(CELLS, mask=MASK))


@pytest.mark.parametrize(
    ("fitted", "scored"),
    [((0, 1), (1, 0)), ((2019, 2020), (2020, 2019)), ((2019, 2020), (2019, 2021))],
)
def test_number_labels_in_another_order_are_refused(fitted, scored):
    owner, schema, _ = learned(labelled(*fitted))
    with pytest.raises(ValueError, match=f"the columns are {scored[0]}, {scored[1]}, but in fit"):
        schema.rows(owner, labelled(*scored))
    restored, owner = Schema.from_file(*schema.file_parts()), BaseEstimator()
    restored.name_features(owner)
    with pytest.raises(ValueError, match="but in fit they were"):
        restored.rows(owner, labelled(*scored))
    for fine in (labelled(*fitted), pd.DataFrame(CELLS), CELLS):
        assert schema.rows(owner, fine).x.shape == (N, 2)


@pytest.mark.parametrize("kind", [KDE, RoundtripClassifier, RoundtripDetector])
def test_every_estimator_refuses_number_labels_in_another_order(kind):
    brief = {"estimator": default_density(2).set_params(max_epochs=1)}
    fitted = kind(**{} if kind is KDE else brief).fit(labelled(7, 8), np.arange(N) % 2)
    score = fitted.predict_proba if kind is RoundtripClassifier else fitted.score_samples
    with pytest.raises(ValueError, match="the columns are 8, 7, but in fit they were 7, 8"):
        score(labelled(8, 7))


def test_tuple_labels_survive_a_file():
    labels = [("a", 1), ("b", ("c", 2))]
    _, schema, _ = learned(labelled(*labels))
    assert Schema.from_file(*schema.file_parts()).columns == labels


@pytest.mark.parametrize("label", [pd.Timestamp("2020-01-01"), None, np.nan, ("a", b"b")])
def test_labels_that_a_file_cannot_hold_are_refused_before_the_fit(label):
    with pytest.raises(ValueError, match=r"of a column must be text, a number, .* rename"):
        learned(labelled("a", label))


def test_a_frame_of_dates_is_one_of_dates():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(CELLS.ravel(), "D")
    frame = pd.DataFrame(days.to_numpy().reshape(N, 2), columns=["a", "b"])
    _, schema, rows = learned(frame)
    assert [column.kind for column in schema.form.columns] == ["date", "date"]
    pd.testing.assert_frame_equal(schema.table(rows.x, np.random.RandomState(0)), frame)


@pytest.mark.parametrize(
    "table",
    [
        np.column_stack([LARGE, np.arange(N)]),
        np.arange(2 * N, dtype="uint64").reshape(N, 2) + np.uint64(2**63),
        pd.DataFrame({"a": LARGE}),
        pd.DataFrame({"a": pd.array([*LARGE.tolist(), None], dtype="Int64"), "b": 1.5}),
        pd.DataFrame({"a": LARGE.tolist()}, dtype=object),
        pd.DataFrame({"a": LARGE}).convert_dtypes(dtype_backend="pyarrow"),
    ],
    ids=["int64", "uint64", "frame", "Int64", "object", "pyarrow"],
)
def test_whole_numbers_that_float64_cannot_tell_apart_are_refused(table):
    with pytest.raises(ValueError, match=r"column .*: float64 can't tell its whole numbers, from"):
        learned(table)


def test_large_whole_numbers_are_fine_where_float64_tells_them_apart():
    wide = np.linspace(-(2**62), 2**62, N).astype("int64")
    learned(np.column_stack([wide, 2**60 + 2**20 * np.arange(N)]))
    _, schema, _ = learned(pd.DataFrame({"a": LARGE}), columns={"a": "category"})
    assert schema.form.columns[0].levels[0] in LARGE


@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint64", "int8", "int64[pyarrow]"])
def test_samples_of_whole_numbers_end_where_their_type_ends(dtype):
    cells = NumberColumn(dtype).decoded(np.array([-1e30, 1e30]))
    ends = np.iinfo(dtype.lower().partition("[")[0])
    assert cells[0] == ends.min
    assert ends.max * 0.99 < cells[1] <= ends.max
