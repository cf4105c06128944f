"""The benchmark of mixed tables: its figures, its copula, its records and its page."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from mixed_tables import key, measure
from mixed_tables_copula import GaussianCopula
from mixed_tables_data import TABLES, Split, categories_of, split_of
from mixed_tables_methods import COPULA, INDEPENDENT, METHODS, REAL, ROUNDTRIP, Task
from mixed_tables_metrics import (
    MISSING,
    association_error,
    associations,
    copies,
    indistinguishability,
    plain,
    usefulness,
)
from mixed_tables_page import page


def table(rows, seed, *, slope=2.0):
    """Size depends on colour; it is missing in red rows only; target depends on size."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], rows, p=[0.5, 0.3, 0.2])
    size = slope * (colour == "blue") + rng.normal(size=rows)
    frame = pd.DataFrame({"colour": colour, "size": size, "count": rng.poisson(3, rows)})
    frame["zip"] = rng.integers(1, 4, rows)
    frame["target"] = size + 0.5 * rng.normal(size=rows) > 0
    frame["size"] = frame["size"].mask((frame["colour"] == "red") & (rng.random(rows) < 0.5))
    frame["colour"] = frame["colour"].mask(rng.random(rows) < 0.1)
    return frame


def split(rows=1500):
    return Split(table(rows, 0), table(rows, 1), "target", ("zip",), "digest")


CATEGORIES = ["colour", "zip", "target"]


def test_categories_are_text_booleans_and_the_codes_that_are_told():
    assert split().categories == CATEGORIES
    assert categories_of(table(10, 0)) == ["colour", "target"]


def test_plain_tables_do_not_depend_on_types():
    codes = plain(pd.DataFrame({"zip": [1, 2, 2]}), ["zip"])
    for other in ([1.0, 2.0, 2.0], ["1", "2", "2"], pd.Categorical([1, 2, 2])):
        assert plain(pd.DataFrame({"zip": other}), ["zip"]).equals(codes)
    cells = plain(pd.DataFrame({"a": [True, None], "b": [None, 1]}), ["a"])
    assert cells.to_dict("list")["a"][0] == "True"
    assert cells.isna().to_numpy().tolist() == [[False, True], [True, False]]


def test_trees_tell_other_rows_but_not_further_ones():
    test = table(2000, 1)
    assert indistinguishability(table(2000, 2), test, CATEGORIES, 0) > 0.9
    shifted = table(2000, 2).assign(size=lambda frame: frame["size"] + 100)
    # The half of red sizes is missing on both sides, and half of the rows are red.
    assert indistinguishability(shifted, test, CATEGORIES, 0) < 0.3
    purple = table(2000, 2).assign(colour="purple")
    assert indistinguishability(purple, test, CATEGORIES, 0) == pytest.approx(0, abs=1e-9)


def test_useful_samples_predict_the_target():
    test = table(2000, 1)
    good = usefulness(table(2000, 2), test, CATEGORIES, "target", 0)
    assert good > 0.8
    shuffled = table(2000, 2)
    shuffled["target"] = shuffled["target"].sample(frac=1, random_state=0).to_numpy()
    assert usefulness(shuffled, test, CATEGORIES, "target", 0) == pytest.approx(0.5, abs=0.1)
    assert usefulness(shuffled.assign(target=True), test, CATEGORIES, "target", 0) == 0.5
    # A number, which is not known everywhere; another size would be far off.
    score = usefulness(table(2000, 2), test, CATEGORIES, "size", 0)
    assert 0.3 < score < 1
    assert usefulness(table(2000, 2, slope=-9.0), test, CATEGORIES, "size", 0) < 0


def test_associations_have_known_values():
    a = np.tile([0, 1], 50)
    frame = pd.DataFrame({"a": a, "b": np.repeat([0, 1], 50), "x": a * 2.0, "y": -3.0 * a})
    frame["same"], frame["constant"] = a, 5
    found = associations(frame, ["a", "b", "same"], [])
    assert found["a", "same"] == pytest.approx(1)
    assert found["a", "b"] == pytest.approx(0)
    assert found["x", "y"] == pytest.approx(-1)
    assert found["x", "a"] == pytest.approx(1)
    assert found["x", "b"] == pytest.approx(0)
    assert found["x", "constant"] == found["constant", "a"] == 0
    assert len(found) == 15


def test_associations_of_missing_cells_count():
    test = table(2000, 1)
    found = associations(test, CATEGORIES, ["size"])
    assert found["colour", MISSING + "size"] > 0.5
    assert ("size", MISSING + "size") not in found
    everywhere = table(2000, 2)
    everywhere["size"] = table(2000, 2)["size"].fillna(0).mask(np.arange(2000) % 4 == 0)
    good = association_error(table(2000, 2), test, CATEGORIES)
    assert good < 0.05
    assert association_error(everywhere, test, CATEGORIES) > good + 0.03


def test_copies_are_counted():
    train = table(100, 0)
    assert copies(train.astype({"zip": float}), train, CATEGORIES) == 1
    assert copies(table(100, 1), train, CATEGORIES) < 0.2  # those whose size is missing may be


def test_copula_keeps_margins_types_and_the_correlation_of_coarse_columns():
    rng = np.random.default_rng(0)
    z = rng.multivariate_normal([0, 0, 0], [[1, 0.8, 0.6], [0.8, 1, 0.5], [0.6, 0.5, 1]], 4000)
    frame = pd.DataFrame({"coarse": np.rint(z[:, 0]).astype(int), "x": z[:, 1], "y": z[:, 2]})
    frame["sign"] = np.where(z[:, 0] < 1, "low", "high")  # the more frequent level goes first
    copula = GaussianCopula(["sign"]).fit(frame)
    assert copula.correlation_[0, 1:3] == pytest.approx([0.8, 0.6], abs=0.03)
    assert copula.correlation_[1, 3] == pytest.approx(0.8, abs=0.04)

    train = table(4000, 0)
    samples = GaussianCopula(CATEGORIES).fit(train).sample(4000)
    assert samples.dtypes.equals(train.dtypes)
    for name in train:
        assert samples[name].isna().mean() == pytest.approx(train[name].isna().mean(), abs=0.03)
    assert samples["count"].mean() == pytest.approx(3, abs=0.15)
    assert (samples["colour"] == "red").mean() == pytest.approx(0.45, abs=0.03)
    errors = [
        association_error(each, table(4000, 1), CATEGORIES)
        for each in (samples, METHODS[INDEPENDENT].draw(split(), Task(0, 1, 1, 4000)).samples)
    ]
    assert errors[0] < 0.6 * errors[1]


def test_all_tables_can_be_split(tmp_path):
    for name, known in TABLES.items():
        frame = table(50, 0).rename(columns={"target": known.target})
        for column in known.dropped:
            frame[column] = np.arange(50)
        frame.to_csv(tmp_path / known.file, sep=known.separator, index=False)
        first, second, again = (split_of(name, seed, tmp_path) for seed in (0, 1, 0))
        assert (len(first.train), len(first.test)) == (40, 10)
        assert list(first.train) == [column for column in frame if column not in known.dropped]
        assert first.train.equals(again.train)
        assert not first.train.equals(second.train)
        assert first.digest == second.digest


def test_keys_depend_on_time_only_where_it_matters():
    names = (INDEPENDENT, "arfpy", ROUNDTRIP)
    for name, timed in zip(names, (False, True, True), strict=True):
        one, other = (key("Adult", name, 0, split(), budget, 2) for budget in (5, 300))
        assert (one != other) is timed


def record(name, method, seed, value, **others):
    return {
        "table": name,
        "method": method,
        "seed": seed,
        **dict.fromkeys(("indistinguishability", "usefulness"), value),
        **dict.fromkeys(("association_error", "copies", "test_copies"), 0.01),
        **dict.fromkeys(("fit_seconds", "cpu_seconds", "sample_seconds"), 2.0),
        **dict.fromkeys(("train_rows", "test_rows", "columns"), 1000),
        **dict.fromkeys(("categories", "missing_cells"), 3),
        "rows": "a",
        "budget": 300.0,
        "method_threads": 2,
        "cores": 2,
        "scikit_learn": "1.9",
        "versions": {"pandas": "3"},
        **others,
    }


def test_page_shows_means_spreads_and_gaps():
    trained = {"epochs": 7, "same_types": True}
    records = [record("Adult", REAL, seed, 1.0) for seed in range(2)]
    records += [record("Adult", ROUNDTRIP, seed, 0.8 + 0.1 * seed, **trained) for seed in range(2)]
    records += [record("BANK", REAL, 0, 0.9), record("BANK", REAL, 0, 0.5, rows="b")]
    records.append(record("Adult", "arfpy", 0, 0.3, rounds=2))
    text = page(records)
    _, first, second, *_ = text.split("## ")
    assert "seeds 0, 1, mean ± standard deviation over them." in text
    assert "| real rows | 1.000 ± 0.000 | 0.500 | 0.750 |" in first
    assert "| real rows | 1.000 ± 0.000 | 0.500 |\n" in second  # no mean of areas and R2
    assert "| test rows | 0.010 ± 0.000 | 0.010 | 0.010 |" in text
    assert "| Roundtrip | 0.850 ± 0.071 |  |  |" in first
    assert "| arfpy | 0.300 |  |  |" in first
    assert "Adult (income), BANK (y), R2 for no table" in text
    assert "types of the training rows in 2 of 2 runs" in text
    assert "Training: Roundtrip 7 epochs; arfpy 2 rounds." in text
    assert "| arfpy | 2 | 1 | 2 (2) / 2 |  |" in text


def test_page_tells_fits_that_had_no_time():
    starved = {"fit_seconds": 300.0, "cpu_seconds": 200.0}
    records = [record("Adult", name, 0, 0.5, **starved) for name in ("arfpy", COPULA)]
    records[1]["budget"] = None
    assert "With less than 80% of a core: arfpy on Adult, seed 0." in page(records)
    assert "less than 80%" not in page([record("Adult", "arfpy", 0, 0.5)])


def test_page_of_measured_records_is_complete():
    data = replace(split(400), digest="x")
    records = [
        {
            "table": "Adult",
            "method": name,
            "seed": 0,
            "cores": 2,
            "scikit_learn": "1.9",
            **measure(name, data, Task(0, 1.0, 1, 400)),
        }
        for name in (REAL, INDEPENDENT, COPULA)
    ]
    by_method = {each["method"]: each for each in records}
    assert by_method[REAL]["indistinguishability"] > 0.85
    assert by_method[REAL]["copies"] == 1
    assert by_method[INDEPENDENT]["indistinguishability"] < 0.8
    text = page(records)
    for name in by_method:
        assert text.count(f"\n| {name} |") == 5
