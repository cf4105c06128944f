"""Random tables of all types of columns, sensible and absurd ones, for tests."""

import datetime
from dataclasses import dataclass

import numpy as np
import pandas as pd

LEVELS = (
    ("red", "green", "blue"),
    ("", " ", "  "),
    ("größe", "列", "🙂", "a\nb", "nan", "None"),
    ("yes", "no"),
    ("only",),
    ("x" * 10_000, "y" * 10_000, "short"),
)
LABELS = (
    "größe",
    "列の名前",
    "two words",
    "price, €",
    "nan",
    "new\nline",
    "x_1",
    "ID2",
    "%s {}",
    "'q'",
)
MARKS = (None, np.nan, pd.NA, pd.NaT)
"""What stands for a missing cell among objects."""


def _levels(rng):
    return list(LEVELS[rng.integers(len(LEVELS))])


def _draw(rng, rows, values):
    """Some of the values as objects."""
    cells = np.empty(rows, dtype=object)
    cells[:] = [values[place] for place in rng.integers(len(values), size=rows)]
    return pd.Series(cells, dtype=object)


def _dates(rng, rows, unit="us"):
    step = rng.choice([1, 3600, 86_400])
    seconds = 1_500_000_000 // step * step + step * rng.integers(5000, size=rows)
    return pd.Series(seconds.astype("datetime64[s]").astype(f"datetime64[{unit}]"))


def _durations(rng, rows):
    return pd.Series(rng.integers(-(10**6), 10**6, size=rows).astype("timedelta64[s]"))


def _categories(rng, rows, ordered):
    levels = _levels(rng) if rng.random() < 0.7 else [10, 2, 33]
    declared = levels + (["never used"] if rng.random() < 0.3 and levels[0] != 10 else [])
    codes = rng.integers(len(levels), size=rows)
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(declared), ordered=ordered))


def _with_one(rng, rows, value):
    cells = rng.normal(size=rows)
    cells[rng.integers(rows)] = value
    return pd.Series(cells)


def _mixed(rng, rows):
    cells = _draw(rng, rows, ["text", 1, 2.5, True, datetime.date(2024, 1, 1)])
    cells.iloc[0], cells.iloc[1] = "text", 3
    return cells


FINE = {
    "float": lambda rng, n: pd.Series(rng.normal(size=n)),
    "float32": lambda rng, n: pd.Series(rng.normal(size=n).astype(np.float32)),
    "decimals": lambda rng, n: pd.Series(np.round(rng.normal(5, 3, size=n), 1)),
    "heavy tails": lambda rng, n: pd.Series(rng.standard_cauchy(size=n) ** 3),
    "mostly zeros": lambda rng, n: pd.Series(rng.normal(size=n) * (rng.random(n) < 0.2)),
    "far from zero": lambda rng, n: pd.Series(1e9 + rng.normal(size=n)),
    "tiny": lambda rng, n: pd.Series(1e-30 * rng.normal(size=n)),
    "huge": lambda rng, n: pd.Series(1e30 * rng.normal(size=n)),
    "one huge value": lambda rng, n: _with_one(rng, n, 1e20),
    "int64": lambda rng, n: pd.Series(rng.integers(-50, 50, size=n)),
    "int8": lambda rng, n: pd.Series(rng.integers(-128, 128, size=n).astype(np.int8)),
    "number of the row": lambda rng, n: pd.Series(np.arange(n) + 10**12),
    "Int64": lambda rng, n: pd.Series(rng.integers(5, size=n)).astype("Int64"),
    "UInt16": lambda rng, n: pd.Series(rng.integers(5, size=n)).astype("UInt16"),
    "Float64": lambda rng, n: pd.Series(rng.normal(size=n)).astype("Float64"),
    "bool": lambda rng, n: pd.Series(rng.random(n) < 0.3),
    "boolean": lambda rng, n: pd.Series(rng.random(n) < 0.3).astype("boolean"),
    "objects that are numbers": lambda rng, n: _draw(rng, n, [1, 2.5, 3]),
    "objects that are booleans": lambda rng, n: _draw(rng, n, [True, False]),
    "objects that are text": lambda rng, n: _draw(rng, n, _levels(rng)),
    "str": lambda rng, n: _draw(rng, n, _levels(rng)).astype("str"),
    "string": lambda rng, n: _draw(rng, n, _levels(rng)).astype("string"),
    "category": lambda rng, n: _categories(rng, n, False),
    "ordered category": lambda rng, n: _categories(rng, n, True),
    "dates": lambda rng, n: _dates(rng, n),
    "dates in seconds": lambda rng, n: _dates(rng, n, "s"),
    "dates with a zone": lambda rng, n: _dates(rng, n, "ns").dt.tz_localize("Asia/Tokyo"),
    "objects that are dates": lambda rng, n: pd.Series(_dates(rng, n).dt.date, dtype=object),
    "durations": lambda rng, n: _durations(rng, n),
    "constant number": lambda rng, n: pd.Series(np.full(n, rng.choice([0.0, 7.0, 1e-9, -1e12]))),
    "constant text": lambda rng, n: _draw(rng, n, ["always"]),
    "constant date": lambda rng, n: pd.Series(np.full(n, np.datetime64("2024-02-29", "us"))),
}
"""Columns that a fit accepts: each draws cells, given a generator and the number of rows."""

ABSURD = {
    "lists": lambda rng, n: _draw(rng, n, [[1, 2], [3]]),
    "dicts": lambda rng, n: _draw(rng, n, [{"a": 1}, {}]),
    "tuples": lambda rng, n: _draw(rng, n, [(1, 2), (3,)]),
    "arrays": lambda rng, n: _draw(rng, n, [np.zeros(2), np.ones(3)]),
    "bytes": lambda rng, n: _draw(rng, n, [b"a", b"b"]),
    "mixed": _mixed,
    "text and booleans": lambda rng, n: _draw(rng, n, ["True", True]),
    "all missing": lambda rng, n: pd.Series(np.full(n, np.nan)),
    "all None": lambda rng, n: pd.Series([None] * n, dtype=object),
    "all NaT": lambda rng, n: pd.Series(np.full(n, np.datetime64("NaT", "us"))),
    "infinite": lambda rng, n: _with_one(rng, n, rng.choice([np.inf, -np.inf])),
    "infinite in Float64": lambda rng, n: _with_one(rng, n, np.inf).astype("Float64"),
    "near the end of float64": lambda rng, n: pd.Series(1e308 * rng.uniform(-1, 1, size=n)),
    "subnormal": lambda rng, n: pd.Series(5e-324 * rng.integers(9, size=n)),
    "complex": lambda rng, n: pd.Series(rng.normal(size=n) + 1j),
    "periods": lambda rng, n: pd.Series(pd.period_range("2020-01", periods=n, freq="M")),
    "intervals": lambda rng, n: pd.Series(pd.interval_range(0, n, periods=n)),
    "names of rows": lambda rng, n: pd.Series([f"name {i}" for i in rng.permutation(n)]),
    "category of intervals": lambda rng, n: pd.Series(pd.cut(rng.normal(size=n), 3)),
    "dates near the ends": lambda rng, n: _draw(
        rng, n, [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59)]
    ),
    "sparse": lambda rng, n: pd.Series(pd.arrays.SparseArray(rng.integers(2, size=n))),
}
"""Columns that a fit may refuse, with a message that says why."""


@dataclass(frozen=True)
class RandomTable:
    """A table, rows to score, and what may happen to them.

    Attributes
    ----------
    table : DataFrame
        Rows to fit.
    rows : DataFrame
        The same rows with further holes and levels that `table` does not have.
    kinds : list of str
        Names of the kinds of the columns.
    fit_may_refuse, score_may_refuse : bool
        Whether an error is fine.
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    kinds: list[str]
    fit_may_refuse: bool
    score_may_refuse: bool


def with_holes(cells, holes, rng):
    """A column with missing cells, marked as its type allows."""
    if not holes.any():
        return cells
    if cells.dtype == bool:
        cells = cells.astype(object)
    if isinstance(cells.dtype, np.dtype) and cells.dtype.kind in "iu":
        cells = cells.astype(np.float64)
    if cells.dtype != object:
        return cells.mask(holes)
    cells = cells.copy()
    for row in np.flatnonzero(holes):
        cells.iloc[row] = MARKS[rng.integers(len(MARKS))]
    return cells


def with_new_level(cells, row):
    """A column with a level, or a number, that it did not have."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        new = "never seen" if isinstance(cells.cat.categories[0], str) else 99
        cells = cells.cat.add_categories([new])
    elif any(isinstance(cell, str) for cell in cells):
        new = "never seen"
    elif cells.dtype.kind in "iu":
        new = 100
    else:
        return cells
    cells = cells.copy()
    cells.iloc[row] = new
    return cells


def random_table(seed):
    """A table of 2 to 60 rows and 1 to 8 columns of random kinds."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(2, 61)), int(rng.integers(1, 9))
    absurd = rng.random() < 0.3
    kinds = [str(rng.choice(list(FINE))) for _ in range(columns)]
    if absurd:
        kinds[rng.integers(columns)] = str(rng.choice(list(ABSURD)))
    labels = [str(label) for label in rng.permutation(LABELS)[:columns]]
    if rng.random() < 0.1:
        labels = [1000 + place for place in range(columns)]
    repeated = columns > 1 and rng.random() < 0.04
    if repeated:
        labels[-1] = labels[0]
    parts, further = [], []
    for kind in kinds:
        cells = (FINE | ABSURD)[kind](rng, rows)
        share = rng.choice([0.0, 0.0, 0.1, 0.5, 0.9])
        holes = rng.random(rows) < share
        holes[rng.integers(rows)] = False
        cells = with_holes(cells, holes, rng)
        parts.append(cells)
        changed = cells
        if kind in FINE and rng.random() < 0.3:
            changed = with_new_level(cells, rng.integers(rows))
        further.append(with_holes(changed, rng.random(rows) < rng.choice([0, 0.2, 0.7]), rng))
    index = [pd.RangeIndex(rows), pd.Index([f"r{i}" for i in range(rows)]), pd.Index([7] * rows)]
    index = index[rng.choice(3, p=[0.7, 0.2, 0.1])]
    table, scored = (_joined(each, labels, index) for each in (parts, further))
    if rng.random() < 0.9:
        observed = table.notna().any(axis=1).to_numpy()
        if observed.sum() > 1:
            table, scored = table[observed], scored[observed]
        observed = scored.notna().any(axis=1).to_numpy()
        if observed.any():
            scored = scored[observed]
    refused = any(kind in ABSURD for kind in kinds) or repeated
    return RandomTable(
        table,
        scored,
        kinds,
        refused or bool(table.isna().all(axis=1).any() or table.isna().all().any()),
        refused or bool(scored.isna().all(axis=1).any()),
    )


def _joined(parts, labels, index):
    table = pd.concat(parts, axis=1)
    table.columns = pd.Index(labels)
    return table.set_axis(index)
