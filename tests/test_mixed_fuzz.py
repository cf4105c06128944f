"""Random tables of all types of columns are fitted, or refused with a reason; so is bad input."""

import datetime

import numpy as np
import pandas as pd
import pytest
from conftest import TINY
from mixed_tables_at_random import random_table

from roundtrip import Roundtrip

QUICK, ALL = 25, 500
SAMPLES, SCORED = 7, 10


def refusal(call, table):
    """The error by which a table is refused, which names a column or a row; None if it is not."""
    error = None
    try:
        call(table)
    except (ValueError, TypeError) as refused:
        error = refused
    places = [form(label) for label in table.columns for form in (str, repr)]
    named = error is None or "row" in str(error) or any(each in str(error) for each in places)
    assert named, f"names no column or row: {error}"
    return error


def check(seed):
    """Fit a random table, draw from it and score it with more holes and new levels."""
    made = random_table(seed)
    before = made.table.copy(deep=True)
    missing = "model" if seed % 3 == 0 else "ignore"
    est = Roundtrip(**TINY, latent_dim=1 + seed % 2, missing=missing)
    error = refusal(est.fit, made.table)
    assert error is None or made.fit_may_refuse, f"{made.kinds}: {error}"
    pd.testing.assert_frame_equal(made.table, before)
    if error is not None:
        return
    drawn = est.sample(SAMPLES, random_state=0)
    assert len(drawn) == SAMPLES
    assert list(drawn.columns) == list(before.columns)
    for label, dtype in before.dtypes.items():
        # Objects that are numbers, dates or durations get a type of their own.
        same = dtype in (drawn[label].dtype, object) or isinstance(dtype, pd.SparseDtype)
        assert same, f"{label}: {drawn[label].dtype}, not {dtype}"
    assert np.isfinite(est.score_samples(before[:SCORED])).all(), made.kinds
    scores = []
    error = refusal(lambda rows: scores.append(est.score_samples(rows)), made.rows)
    # Models of complete numbers take complete rows.
    fine = made.score_may_refuse or not est.schema_.is_mixed
    assert error is None or fine, f"{made.kinds}: {error}"
    for log_density in scores:
        assert log_density.shape == (len(made.rows),)
        assert np.isfinite(log_density).all(), made.kinds


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(QUICK))
def test_random_tables(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(QUICK, ALL))
def test_many_random_tables(seed):
    check(seed)


def table_with(cells):
    """A table of 20 rows with a number, and a column `odd` that repeats some cells."""
    repeated = np.empty(20, dtype=object)
    repeated[:] = (list(cells) * 20)[:20]
    numbers = np.random.default_rng(0).normal(size=20)
    return pd.DataFrame({"size": numbers, "odd": pd.Series(repeated, dtype=object)})


REFUSED = {
    "lists": ([[1, 2], [3]], r"column 'odd': row 0 has \[1, 2\] of the type list"),
    "dicts": ([{"a": 1}], "column 'odd': row 0 has .* of the type dict"),
    "text and numbers": (["a", 1], "column 'odd': it mixes .*'a' in row 0, 1 in row 1"),
    "text and booleans": (["True", True], "column 'odd': it mixes .*row 1"),
    "numbers and dates": ([1, datetime.date(2024, 1, 1)], "column 'odd': it mixes .*row 1"),
    "one list among text": (["a", "b", None, ["c"]], "column 'odd': row 3 has .* type list"),
    "nothing": ([None, np.nan, pd.NA, pd.NaT], "column 'odd': all its cells are missing"),
    "infinity": ([1.0, np.inf], "odd"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_columns_are_refused_with_a_reason(name, tiny):
    cells, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        tiny.fit(table_with(cells))


ACCEPTED = {
    "a level of 10,000 characters": ["x" * 10_000, "y"],
    "constant but for missing cells": ["a", None, "a"],
    "a constant number but for missing cells": [7.0, None, None],
    "one known cell": ["a", *[None] * 19],
    "one known number": [3.5, *[None] * 19],
    "dates in the years 1 and 9999": [
        datetime.datetime(1, 1, 1),
        datetime.datetime(9999, 12, 31, 23, 59, 59),
        None,
    ],
    "days in the years 1 and 9999": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "text that looks like missing cells": ["nan", "None", "", "NaT", "<NA>"],
    "booleans with missing cells": [True, None, False],
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ACCEPTED)
def test_unusual_columns_are_fitted(name, tiny):
    table = table_with(ACCEPTED[name])
    tiny.fit(table)
    assert np.isfinite(tiny.score_samples(table)).all()
    drawn = tiny.sample(50, random_state=0)["odd"]
    known = {cell for cell in ACCEPTED[name] if cell is not None}
    assert drawn.notna().all()
    if isinstance(ACCEPTED[name][0], datetime.date):
        assert min(known) <= drawn.min()
        assert drawn.max() <= max(known)
    else:
        assert set(drawn) <= known


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("fitted", "scored", "message"),
    [
        ([1.0, 2.5], "text", "column 'odd': fit had numbers, but row 3 has 'text'"),
        (["a", "b"], 1.5, "column 'odd': fit had text, but row 3 has 1.5"),
        (["a", "b"], ["a"], r"column 'odd': fit had text, but row 3 has \['a'\]"),
        ([1.0, 2.5], [1.0], r"column 'odd': fit had numbers, but row 3 has \[1.0\]"),
        ([datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)], "soon", "column 'odd': .*row 3"),
        ([datetime.date(2024, 1, 1), datetime.date(2024, 2, 1)], 3.0, "column 'odd': .*row 3"),
        ([datetime.timedelta(1), datetime.timedelta(2)], "long", "column 'odd': .*row 3"),
        ([True, False], "yes", "column 'odd': fit had booleans, but row 3 has 'yes'"),
    ],
    ids=lambda case: None,
)
def test_cells_of_another_kind_than_in_fit_are_refused(fitted, scored, message, tiny):
    table = table_with(fitted)
    tiny.fit(table)
    table.at[3, "odd"] = scored
    with pytest.raises(ValueError, match=message):
        tiny.score_samples(table)
