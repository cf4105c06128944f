"""`RoundtripImputer`: missing cells filled in scikit-learn's way."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import TINY
from mixed_oracles import MixedMixture, missing_at_random
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from roundtrip import Roundtrip, RoundtripImputer, load
from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder

ORACLE = MixedMixture()
DENSITY = Roundtrip(**(TINY | {"random_state": None}))


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=40))


def correlated(rows, seed):
    """Two columns with correlation 0.9, a fifth of the cells missing, and the complete rows."""
    rng = np.random.default_rng(seed)
    whole = rng.multivariate_normal([3.0, -1.0], [[1.0, 0.9], [0.9, 1.0]], size=rows)
    X = whole.copy()
    X[rng.random(rows) < 0.2, 0] = np.nan
    X[(rng.random(rows) < 0.2) & ~np.isnan(X[:, 0]), 1] = np.nan
    return X, whole


@pytest.fixture(scope="module")
def table():
    return missing_at_random(ORACLE.table(120, seed=0), 0.2, seed=1)


@pytest.fixture(scope="module")
def imputer(table):
    return RoundtripImputer(clone(DENSITY), random_state=0).fit(table)


@parametrize_with_checks([RoundtripImputer(Roundtrip(**TINY), random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_cells_are_filled_given_the_rest_of_their_row():
    X, whole = correlated(1_000, seed=0)
    density = Roundtrip(latent_dim=2, max_epochs=8)
    filled = RoundtripImputer(density, random_state=0).fit_transform(X)
    missing = np.isnan(X)
    np.testing.assert_array_equal(filled[~missing], X[~missing])
    assert np.abs(filled - whole)[missing].mean() < 0.5  # 0.35 at best; means of columns: 0.8


def test_it_gives_what_the_density_imputes(imputer, table):
    pd.testing.assert_frame_equal(imputer.transform(table), imputer.estimator_.impute(table))
    median = clone(imputer).set_params(how="median")._with_density(imputer.estimator_)
    expected = imputer.estimator_.impute(table, how="median")
    pd.testing.assert_frame_equal(median.transform(table), expected)


def test_draws_are_tables_that_repeat_with_the_seed(imputer, table):
    table = table.head(40)
    one, three = (
        RoundtripImputer.from_density(imputer.estimator_, n_draws=count, random_state=4)
        for count in (1, 3)
    )
    assert isinstance(one.transform(table), pd.DataFrame)
    drawn = three.transform(table)
    assert len(drawn) == 3
    assert not drawn[0].equals(drawn[1])
    pd.testing.assert_frame_equal(three.transform(table)[2], drawn[2])
    known = table.notna().to_numpy()
    for each in drawn:
        assert each.notna().all().all()
        assert (each.astype(object) == table.astype(object)).to_numpy()[known].all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "array", "list"])
def test_tables_of_every_library_keep_their_form(kind):
    X, _ = correlated(80, seed=1)
    X[5] = np.nan  # a row without any observed cell
    frame = pd.DataFrame(X, columns=["a", "b"])
    given = {
        "pandas": lambda: frame,
        "polars": lambda: pl.DataFrame(frame.to_dict("list")),
        "pyarrow": lambda: pa.Table.from_pandas(frame),
        "array": lambda: X,
        "list": lambda: X.tolist(),
    }[kind]()
    imputer = RoundtripImputer(clone(DENSITY), random_state=0).fit(given)
    filled = imputer.transform(given)
    assert type(filled) is (np.ndarray if kind == "list" else type(given))
    values = np.asarray(filled if kind != "pyarrow" else filled.to_pandas())
    assert values.shape == X.shape
    assert not np.isnan(values).any()
    names = ["x0", "x1"] if kind in ("array", "list") else ["a", "b"]
    assert imputer.get_feature_names_out().tolist() == names


def test_rows_without_observed_cells_are_filled_given_nothing(imputer, table):
    """Left out of fit, they change nothing there; filled, they are like an average row."""
    rows = table.head(3).copy()
    rows.iloc[1] = None
    rows = rows.astype(table.dtypes)
    filled = imputer.transform(rows)
    assert filled.notna().all().all()
    sample = imputer.estimator_.sample(2_000, random_state=0)
    assert filled["height"].iloc[1] == pytest.approx(sample["height"].mean(), abs=1.5)
    shares = sample["colour"].value_counts(normalize=True)
    assert shares[filled["colour"].iloc[1]] > shares.max() - 0.05
    pd.testing.assert_frame_equal(filled.iloc[[0, 2]], imputer.transform(rows.iloc[[0, 2]]))
    empty = pd.DataFrame(None, index=[0], columns=table.columns).astype(table.dtypes)
    again = RoundtripImputer(clone(DENSITY), random_state=0).fit(pd.concat([table, empty]))
    head = table.head(20)
    pd.testing.assert_frame_equal(again.transform(head), imputer.transform(head))


def test_a_column_without_any_observed_cell_is_refused(table):
    with pytest.raises(ValueError, match="column 'height': all its cells are missing"):
        RoundtripImputer(clone(DENSITY)).fit(table.assign(height=np.nan))
    with pytest.raises(ValueError, match="all its cells are missing"):
        RoundtripImputer(clone(DENSITY)).fit(np.full((5, 2), np.nan))


def test_a_column_may_be_missing_as_a_whole_where_it_was_not_in_fit(imputer, table):
    filled = imputer.transform(table.head(4).assign(height=np.nan))
    assert filled["height"].notna().all()


def test_pipelines_and_column_transformers():
    X, _ = correlated(150, seed=2)
    y = np.nan_to_num(X).sum(axis=1)
    imputer = RoundtripImputer(clone(DENSITY), random_state=0)
    predicted = make_pipeline(imputer, StandardScaler(), LinearRegression()).fit(X, y).predict(X)
    assert np.isfinite(predicted).all()
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=1.0)
    both = ColumnTransformer(
        [("filled", clone(imputer), ["a", "b"])], remainder="passthrough"
    ).set_output(transform="pandas")
    filled = both.fit_transform(frame)
    assert filled.columns.tolist() == ["filled__a", "filled__b", "remainder__c"]
    assert filled.notna().all().all()


def test_set_output_makes_one_table():
    X, _ = correlated(60, seed=3)
    own = RoundtripImputer(clone(DENSITY), random_state=0).fit(X)
    assert own.set_output(transform="polars").transform(X).columns == ["x0", "x1"]
    assert own.set_output(transform="pandas").transform(X).columns.tolist() == ["x0", "x1"]
    with pytest.raises(ValueError, match="n_draws=2 gives a list of tables"):
        own.set_params(n_draws=2).transform(X)


def test_set_output_converts_between_libraries(imputer, table):
    table = table.head(20)
    other = clone(imputer)._with_density(imputer.estimator_).set_output(transform="polars")
    numbers = other.transform(table)
    assert isinstance(numbers, pl.DataFrame)
    assert numbers.columns == list(table.columns)
    assert numbers["colour"].dtype == pl.String
    frame = pl.DataFrame({"a": [1.0, None, 3.0, 4.0] * 10, "job": ["x", "y"] * 20})
    filled = (
        RoundtripImputer(clone(DENSITY), random_state=0)
        .set_output(transform="pandas")
        .fit_transform(frame)
    )
    assert filled["a"].dtype == np.float64
    assert filled["job"].tolist() == ["x", "y"] * 20


def test_saved_and_loaded_it_is_the_same(imputer, table, tmp_path):
    imputer.save(tmp_path / "imputer.rt")
    again = load(tmp_path / "imputer.rt")
    assert isinstance(again, RoundtripImputer)
    table = table.head(20)
    pd.testing.assert_frame_equal(again.transform(table), imputer.transform(table))
    assert again.random_state == 0
    assert again.estimator.get_params() == imputer.estimator.get_params()
    assert list(again.feature_names_in_) == list(table.columns)


def test_kinds_of_columns_and_time_go_to_the_density():
    table = pd.DataFrame({"zip": [1.0, 2.0, np.nan, 1.0] * 20, "x": np.arange(80.0)})
    imputer = RoundtripImputer(
        clone(DENSITY), columns={"zip": "category"}, max_time=0.2, random_state=0
    )
    assert set(imputer.fit_transform(table)["zip"]) <= {1.0, 2.0}
    with pytest.raises(ValueError, match="max_time"):
        clone(imputer).set_params(max_time=-1).fit(table)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"estimator": 3}, "estimator must be a Roundtrip, got int"),
        ({"n_draws": 0}, "n_draws"),
        ({"how": "mode"}, "how must be"),
    ],
)
def test_bad_parameters_are_refused_before_the_fit(parameters, message, monkeypatch):
    monkeypatch.setattr(Roundtrip, "fit", lambda *_, **__: pytest.fail("is fitted"))
    with pytest.raises(ValueError, match=message):
        RoundtripImputer(**parameters).fit(np.ones((5, 2)))


def test_densities_of_images_or_with_a_context_are_refused(rng):
    X = rng.normal(size=(40, 2))
    density = clone(DENSITY).fit(X, context=X[:, 0] > 0)
    with pytest.raises(ValueError, match="without a context"):
        RoundtripImputer.from_density(density)
