import numpy as np
import pandas as pd
import pytest

from roundtrip.data.inference import inferred
from roundtrip.data.kinds import CategoryColumn, NumberColumn
from roundtrip.data.resolution import recognise
from roundtrip.data.table_format import restored_column
from roundtrip.data.times import TimeColumn, rounding_of_days

LETTERS = CategoryColumn("str", ("b", "a"), False, 0.01, (0.7, 0.3))


def test_a_level_that_fit_has_not_seen_has_a_place_of_its_own_and_no_name():
    places = LETTERS.encoded(pd.Series(["a", "c", None, "d", "b"]))
    np.testing.assert_array_equal(places, [1, 2, np.nan, 2, 0])
    assert LETTERS.decoded(places).isna().tolist() == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("levels", "cells", "message"),
    [
        (("a", "b"), ["a", 3], "fit had text, but row 1 has 3"),
        ((1, 2), [1, "x"], "fit had numbers, but row 1 has 'x'"),
        ((False, True), [True, "yes"], "fit had booleans, but row 1 has 'yes'"),
        (("a", "b"), ["a", None, ["x"]], r"fit had text, but row 2 has \['x'\]"),
    ],
)
def test_cells_of_another_kind_are_refused(levels, cells, message):
    column = CategoryColumn("object", levels, False, 0.01, (0.5, 0.5))
    with pytest.raises(ValueError, match=message):
        column.encoded(pd.Series(cells, dtype=object))


def test_levels_are_compared_by_value():
    column = CategoryColumn("int64", (0, 1), False, 0.01, (0.5, 0.5))
    for cells in ([1, 0], [1.0, 0.0], [True, False], pd.array([1, 0], dtype="Int8")):
        assert column.encoded(pd.Series(cells)).tolist() == [1, 0]


def test_numbers_say_which_cell_is_none():
    with pytest.raises(ValueError, match="fit had numbers, but row y has 'x'"):
        NumberColumn("float64").encoded(pd.Series([1.0, "x"], index=["z", "y"]))
    with pytest.raises(ValueError, match=r"fit had numbers, but row 0 has Timestamp"):
        NumberColumn("float64").encoded(pd.Series(pd.to_datetime(["2024"])))


@pytest.mark.parametrize(
    ("days", "shown", "step"),
    [
        (np.arange(19_000, 19_300, 3), "date, in steps of 3 days", 3),
        (19_000 + np.arange(10_000) / 24, "date, in steps of 1 hour", 1 / 24),
        (19_000 + np.arange(9999) * 7 / 1440, "date, in steps of 7 minutes", 7 / 1440),
        (19_000 + np.arange(9999) / 86_400, "date, in steps of 1 second", 1 / 86_400),
        (19_000 + np.sqrt(np.arange(50)), "date", 0),
    ],
)
def test_dates_are_rounded_to_whole_units(days, shown, step):
    days = np.asarray(days, dtype=float)
    rounding = rounding_of_days(days, recognise)
    assert rounding.step == pytest.approx(step)
    assert str(TimeColumn("datetime64[s]", None, rounding.step)) == shown
    if step:
        nearest, _ = rounding.nearest(days)
        np.testing.assert_allclose(nearest, days, rtol=1e-14)
        assert (rounding.spread_widths(days) > 0).all()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_of_every_unit_come_back_to_the_microsecond(unit, rng):
    seconds = rng.integers(-(10**9), 2 * 10**9, size=500)
    parts = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    times = pd.Series((seconds * parts + (parts > 1) * parts // 4).view(f"datetime64[{unit}]"))
    column = TimeColumn(f"datetime64[{unit}]", None)
    back = column.decoded(column.encoded(times))
    assert back.dtype == times.dtype
    assert ((back - times).abs() <= pd.Timedelta(1, "us")).all()


def test_dates_beyond_their_type_become_its_ends():
    column = TimeColumn("datetime64[ns]", None)
    far = column.decoded(np.array([-1e9, 1e9]))
    assert far.dt.year.tolist() == [1677, 2262]
    old = pd.Series(np.array(["0999-01-01", "9999-12-31"], dtype="datetime64[s]"))
    wide = TimeColumn("datetime64[s]", None)
    pd.testing.assert_series_equal(wide.decoded(wide.encoded(old)), old)


def test_time_zones_must_agree():
    zoned = pd.Series(pd.date_range("2024-03-30", periods=9, freq="6h", tz="Europe/Berlin"))
    column = inferred(zoned)
    assert column.encoded(zoned.dt.tz_convert("UTC")).tolist() == column.encoded(zoned).tolist()
    with pytest.raises(ValueError, match="its dates come without a time zone, but fit had one"):
        column.encoded(zoned.dt.tz_localize(None))


@pytest.mark.parametrize(
    "column",
    [
        NumberColumn("Int64", 1.0),
        LETTERS,
        CategoryColumn("category", (2, 1), True, 0.01, (0.5, 0.5), (1, 2, 3)),
        CategoryColumn.indicator(0.25),
        TimeColumn("datetime64[s, UTC]", "UTC"),
        TimeColumn("timedelta64[ns]", None, 0.5),
    ],
)
def test_columns_survive_files(column):
    again = restored_column(column.plain())
    assert again == column
    assert type(again) is type(column)


def test_a_value_outside_booleans_is_refused_by_row():
    column = inferred(pd.Series([True, False]))
    assert column.encoded(pd.Series([1, 0])).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"^fit had only False and True, but row r1 has 2$"):
        column.encoded(pd.Series([1, 2], index=["r0", "r1"]))


@pytest.mark.parametrize(
    ("declared", "levels", "expected"),
    [
        (["a", "b"], ["a", "b", "z"], ["a", "b", "z"]),
        (["a", "b"], ["z", "b", "a"], ["z", "b", "a"]),
        (["a", "b", "c"], ["a", "b"], ["a", "b", "c"]),
        (["c", "b", "a"], ["a", "z", "b"], ["a", "z", "b", "c"]),
    ],
)
def test_given_levels_need_not_be_among_those_of_a_pandas_category(declared, levels, expected):
    column = inferred(pd.Series(pd.Categorical(["a", "b"] * 5, declared)), levels)
    cells = column.decoded(np.arange(len(levels), dtype=float))
    assert cells.tolist() == levels
    assert cells.cat.ordered
    assert cells.cat.categories.tolist() == expected


def test_draws_of_days_become_the_nearest_day():
    column = TimeColumn("date", None)
    cells = column.decoded(np.array([10.2, 10.8, np.nan, -0.4]))
    days = [None if cell is None else cell.isoformat() for cell in cells]
    assert days == ["1970-01-11", "1970-01-12", None, "1970-01-01"]
