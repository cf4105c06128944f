import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from roundtrip.data import Schema
from roundtrip.data.inference import MOST_LEVELS, check_overrides, inferred, learned_category


@pytest.mark.parametrize(
    ("cells", "described"),
    [
        ([1.5, None], "number"),
        ([1, 2, 3], "number"),
        (["a", "b", None], "category of 2 levels: 'a', 'b'"),
        (["b", "a", "b"], "category of 2 levels: 'b', 'a'"),
        ([True, False, None], "category of 2 levels: False, True"),
        ([True, True], "category of 2 levels: False, True"),
        ([decimal.Decimal("1.5"), None], "number"),
        ([datetime.date(2024, 1, 1)], "date"),
        ([datetime.datetime(2024, 1, 1, 12), None], "date"),
        ([datetime.timedelta(hours=1)], "duration"),
        (["x" * 10_000, "y"], "category of 2 levels: '" + "x" * 39 + "..., 'y'"),
        (pd.Categorical(["a"], categories=["c", "a"]), "category of 1 level: 'a'"),
        (
            pd.Categorical(["a"], categories=["c", "a"], ordered=True),
            "ordered category of 2 levels: 'c', 'a'",
        ),
    ],
)
def test_kinds_follow_from_types_and_cells(cells, described):
    assert str(inferred(pd.Series(cells))) == described
    assert str(inferred(pd.Series(cells, dtype=None).astype(object))).startswith(
        described.removeprefix("ordered ").split(" of")[0]
    )


@pytest.mark.parametrize(
    ("cells", "override", "described"),
    [
        ([3, 1, 1], "category", "category of 2 levels: 1, 3"),
        ([3, 1, 2], "ordered", "ordered category of 3 levels: 1, 2, 3"),
        (["low", "high"], ["low", "middle", "high"], "ordered category of 3 levels: 'low', 'midd"),
        (["2024-02-01", None, "2024-02-02T12:00"], "date", "date"),
        (["1 days", "02:00:00"], "duration", "duration"),
        ([True, False], "number", "number"),
        ([f"id {i}" for i in range(50)], "category", "category of 50 levels"),
    ],
)
def test_the_user_decides(cells, override, described):
    assert str(inferred(pd.Series(cells), override)).startswith(described)


BAD = {
    "lists": ([[1], [2]], None, r"row 0 has \[1\] of the type list; cells are numbers, text"),
    "mixed": ([1.0, "x"], None, "mixes kinds of cells: 1.0 in row 0, 'x' in row 1; convert"),
    "text and flags": (["x", True], None, "mixes kinds of cells: 'x' in row 0, True in row 1"),
    "missing": ([None, np.nan], None, "all its cells are missing; drop it"),
    "complex": ([1j, 2j], None, "complex numbers"),
    "times": ([datetime.time(12)], None, "of the type time; cells are"),
    "periods": (pd.period_range("2024", periods=2, freq="D"), None, r"type period.* not supported"),
    "intervals": (pd.cut([1, 2, 3], 2), None, r"of the type Interval; convert levels to text"),
    "names": (
        [f"id {i}" for i in range(50)],
        None,
        "50 different values in 50 rows, such as 'id 0",
    ),
    "levels": (range(6000), "category", "6000 levels, more than 5000; join rare"),
    "no order": (["a", "b"], "ordered", "no order of their own"),
    "not given": (["a", "b", "c"], ["a", "b"], "row 2 has 'c', which is not among"),
    "no date": (["2024-01-01", "soon"], "date", "row 1 has 'soon', which is not a date like"),
    "number as date": ([20240101], "date", "row 0 has 20240101, which is not a date"),
    "far date": (["2024-01-01", "300000-01-01"], "date", "row 1 has '300000-01-01', which is not"),
    "zones": (["2024-01-01T00+01:00", "2024-01-01T00+02:00"], "date", "not every cell is a date"),
    "no duration": (["1 days", "long"], "duration", "row 1 has 'long', which is not a duration"),
    "text as number": (["1", "2"], "number", "row 0 has the text '1'; convert"),
}


@pytest.mark.parametrize(("cells", "override", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_no_column_is_refused_with_its_name(cells, override, message):
    frame = pd.DataFrame({"x": np.arange(len(cells)), "odd": pd.Series(cells)})
    columns = None if override is None else {"odd": override}
    with pytest.raises(ValueError, match=f"^column 'odd': .*{message}"):
        Schema.fit(BaseEstimator(), frame, None, scale="standard", columns=columns)


@pytest.mark.parametrize("levels", [41, 500])
def test_many_levels_are_fine(levels, rng):
    cells = pd.Series([f"country {i}" for i in rng.integers(levels, size=5000)])
    column = inferred(cells)
    assert len(column.levels) == cells.nunique()
    assert list(column.frequencies) == sorted(column.frequencies, reverse=True)
    assert sum(column.frequencies) == pytest.approx(1)
    assert 0 < column.reserved < 0.05


def test_the_reserved_probability_is_that_of_levels_seen_once():
    often = inferred(pd.Series(["a", "b"] * 500))
    rare = inferred(pd.Series(["a"] * 980 + [f"rare {i}" for i in range(20)]))
    assert often.reserved == pytest.approx(1 / 1002)
    assert rare.reserved == pytest.approx(21 / 1002)
    assert inferred(pd.Series([True, False] * 9)).reserved == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("zip", "columns must map columns to kinds"),
        ({"zip": "text"}, r"columns\['zip'\] must be one of 'number', 'category', 'ordered'"),
        ({"zip": 3}, "must be one of"),
        ({"zip": ["a"]}, "two or more different levels"),
        ({"zip": ["a", "a"]}, "two or more different levels"),
    ],
)
def test_bad_overrides(columns, message):
    with pytest.raises(ValueError, match=message):
        check_overrides(columns)


def test_overrides_of_columns_that_are_not_there():
    frame = pd.DataFrame({"x": [1, 2]})
    with pytest.raises(ValueError, match="columns= names 'zip', but the table has no such column"):
        Schema.fit(BaseEstimator(), frame, None, scale=None, columns={"zip": "category"})


def test_the_largest_number_of_levels_holds_for_levels_that_do_not_occur():
    many = [f"level {number}" for number in range(MOST_LEVELS + 1)]
    cells = pd.Series(many[:2] * 5)
    ordered = pd.Series(pd.Categorical(cells, many, ordered=True))
    for column, override in ((cells, many), (ordered, None)):
        with pytest.raises(ValueError, match="it has 5001 levels, more than 5000"):
            inferred(column, override)
    assert len(inferred(cells, many[:-1]).levels) == MOST_LEVELS


def test_thousands_of_levels_are_learnt_in_no_time():
    class Level(str):
        """Text that counts how often its hash is computed."""

        hashes = 0

        def __hash__(self):
            Level.hashes += 1
            return super().__hash__()

    levels = [Level(number) for number in range(300)]
    column = learned_category(pd.Series(levels, dtype=object), "object", levels, ordered=False)
    assert len(column.levels) == 300
    assert Level.hashes < 20 * 300
