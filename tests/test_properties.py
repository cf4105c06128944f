"""Tables and parameters that hypothesis chooses: refused in one sentence, or as promised."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import pytest
from file_mutations import attempt
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator

from roundtrip import Likelihood, Mixture, Residual, Roundtrip
from roundtrip.data import Schema
from roundtrip.data.tables import read_table, write_table

FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""Some seconds, and the same examples at each run."""

MANY = settings(FEW, max_examples=150, derandomize=False, database=None)

SMALL = {
    "max_epochs": 1,
    "objective": Likelihood(min_steps_per_epoch=2),
    "network": Residual(8, 1),
    "noise": Mixture(boxes=4),
    "tol": 0.5,
    "random_state": 0,
}

NUMBERS = some.floats(allow_nan=False, allow_infinity=False)
MODERATE = some.floats(-1e100, 1e100)


def tables(cells, *, most_rows=12, most_columns=4):
    """Strategy of arrays."""
    shape = some.tuples(some.integers(2, most_rows), some.integers(1, most_columns))
    return shape.flatmap(lambda sides: arrays(np.float64, sides, elements=cells))


def names(count):
    text = some.text(some.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
    # Files can't tell a name with spaces at its ends from one without.
    text = text.filter(lambda name: name == name.strip() and name.strip('"'))
    return some.lists(text, min_size=count, max_size=count, unique=True)


def refused_or(call):
    """Return what the call gives, or None if it refuses its input in one sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value, refusal = attempt(call, ValueError, TypeError)
    assert refusal is None or 0 < len(str(refusal)) < 3000
    return value


@FEW
@given(tables(NUMBERS), some.sampled_from(["standard", "minmax", None]))
def test_schemas_keep_every_table(X, scale):
    kept = refused_or(lambda: Schema.fit(BaseEstimator(), X, None, scale=scale))
    if kept is None:
        return
    schema, rows = kept
    assert np.isfinite(rows.x.numpy()).all()
    assert np.isfinite(schema.log_det)
    back = schema.values(rows.x)
    largest = np.abs(X).max(axis=0)
    assert (np.abs(back - X) <= 1e-12 * largest + 1e-300).all()


@FEW
@given(tables(MODERATE), some.floats(0.01, 100), some.floats(-100, 100))
def test_other_units_change_the_density_by_a_constant(X, unit, origin):
    """Scaled rows are the same in other units, and log|det| differs by that of the units."""
    ours = refused_or(lambda: Schema.fit(BaseEstimator(), X, None, scale="minmax"))
    theirs = refused_or(lambda: Schema.fit(BaseEstimator(), X * unit, None, scale="minmax"))
    if ours is None or theirs is None:
        return
    varies = X.max(axis=0) - X.min(axis=0) > 1e-6 * np.abs(X).max(axis=0) + 1e-290
    if varies.all():
        np.testing.assert_allclose(theirs[1].x, ours[1].x, atol=1e-6)
        expected = ours[0].log_det - X.shape[1] * np.log(unit)
        np.testing.assert_allclose(theirs[0].log_det, expected, rtol=1e-6, atol=1e-6)


@FEW
@given(some.data(), some.sampled_from([".csv", ".tsv", ".csv.gz", ".parquet"]))
def test_files_hold_every_table(tmp_path_factory, data, suffix):
    X = data.draw(tables(NUMBERS))
    frame = pd.DataFrame(X, columns=data.draw(names(X.shape[1])))
    path = tmp_path_factory.mktemp("tables") / f"table{suffix}"
    write_table(frame, path)
    again = read_table(path)
    if not isinstance(again, pd.DataFrame):  # names that are numbers are no header
        assert all(_is_number(name) for name in frame.columns)
        again = pd.DataFrame(again[1:])
    assert again.shape == X.shape
    np.testing.assert_array_equal(again.to_numpy(dtype=np.float64), X)


def _is_number(name):
    with contextlib.suppress(ValueError):
        float(name)
        return True
    return name.lower() in {"na", "nan", "null", "n/a", "#n/a", "none", "<na>"} or name == "#NA"


@FEW
@given(some.data())
def test_files_hold_text(tmp_path_factory, data):
    cell = some.text(some.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
    cells = data.draw(some.lists(cell.map(lambda text: f"t{text}"), min_size=2, max_size=9))
    path = tmp_path_factory.mktemp("texts") / "table.csv"
    write_table(pd.DataFrame({"name": cells, "place": range(len(cells))}), path)
    assert read_table(path)["name"].tolist() == cells


ODD = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(-3, 3),
    some.sampled_from([10**30, -(10**30), "auto", "", "normal", "mixture", (), [], {}, object()]),
    some.floats(),
    some.text(max_size=5),
    some.lists(some.integers(), max_size=2),
)
PARAMETERS = sorted(
    set(Roundtrip().get_params(deep=False)) - {"device", "verbose", "random_state", "part_encoder"}
)
"""Without those on which the machine, not the library, may depend."""


def check_parameter(name, value):
    X = np.random.default_rng(0).normal(size=(30, 2))
    est = refused_or(lambda: Roundtrip(**SMALL | {name: value}).fit(X))
    if est is not None:
        assert all(part.isfinite().all() for part in est.model_.state_dict().values())
        scores = refused_or(lambda: est.score_samples(X[:2]))
        assert scores is not None
        assert np.isfinite(scores).all()


def check_table(X, scale):
    def fit():
        return Roundtrip(**SMALL, scale=scale).fit(X)

    est = refused_or(fit)
    if est is None:
        return
    assert all(part.isfinite().all() for part in est.model_.state_dict().values())
    scores = refused_or(lambda: est.score_samples(X[:2]))
    assert scores is not None
    assert np.isfinite(scores).all()
    sample = est.sample(3, random_state=0)
    assert sample.shape == (3, X.shape[1])
    assert not np.isnan(sample).any()


SOME_FITS = settings(FEW, max_examples=6)


@SOME_FITS
@given(some.sampled_from(PARAMETERS), ODD)
def test_parameters(name, value):
    check_parameter(name, value)


@SOME_FITS
@given(tables(NUMBERS), some.sampled_from(["standard", "minmax", None]))
def test_fits(X, scale):
    check_table(X, scale)


@pytest.mark.slow
@MANY
@given(some.sampled_from(PARAMETERS), ODD)
def test_many_parameters(name, value):
    check_parameter(name, value)


@pytest.mark.slow
@MANY
@given(tables(NUMBERS), some.sampled_from(["standard", "minmax", None]))
def test_many_fits(X, scale):
    check_table(X, scale)


@pytest.mark.slow
@MANY
@given(some.data())
def test_scored_rows_of_any_size(data):
    """Rows anywhere in float64 have finite densities under the default noise, or are refused."""
    X = np.random.default_rng(1).normal(size=(40, 2))
    est = refused_or(lambda: Roundtrip(**SMALL).fit(X))
    rows = data.draw(tables(NUMBERS, most_rows=3, most_columns=2).filter(lambda x: x.shape[1] == 2))
    result = refused_or(lambda: est.density(rows))
    if result is not None:
        assert not np.isnan(result.log_density).any()
        assert np.isfinite(result.log_density[result.converged]).all()
