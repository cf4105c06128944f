"""When the encoder of parts of rows is trained, and where it is kept."""

import copy
import time
from functools import partial

import numpy as np
import pytest
from conftest import TINY

from roundtrip import Roundtrip, RoundtripDetector, load
from roundtrip.density import prepared
from roundtrip.density.part_encoder import TIMED_STEPS, fit_part_encoder
from roundtrip.density.time_of_parts import TimeOfParts


@pytest.fixture(name="trained")
def trainings(monkeypatch):
    """Short trainings, each of which leaves an entry."""
    found = []

    def short(*arguments, **settings):
        found.append(settings["seconds"])
        return fit_part_encoder(*arguments, steps=50, **settings)

    monkeypatch.setattr(prepared, "fit_part_encoder", short)
    return found


@pytest.fixture(name="X")
def rows(mixture):
    return mixture.X[:300]


@pytest.fixture
def holes(X):
    return np.where([True, False], np.nan, X[:8])


def test_small_fits_leave_it_to_the_first_question(X, holes, trained):
    est = Roundtrip(**TINY).fit(X)
    assert trained == []
    est.density(holes)
    est.impute(holes)
    est.sample(3, given={0: 0.1})
    assert len(trained) == 1


def test_fits_train_it_if_asked(X, holes, trained):
    early = Roundtrip(**TINY, part_encoder=True).fit(X)
    assert trained == [np.inf]
    first = early.density(holes)
    assert len(trained) == 1
    late = Roundtrip(**TINY, part_encoder=False).fit(X).density(holes)
    np.testing.assert_array_equal(first.log_density, late.log_density)


def test_files_keep_it(X, holes, trained, tmp_path):
    est = Roundtrip(**TINY, part_encoder=True).fit(X)
    before = est.density(holes).log_density
    est.save(tmp_path / "with.rt")
    again = load(tmp_path / "with.rt")
    np.testing.assert_array_equal(again.density(holes).log_density, before)
    assert again.sample(4, 0, given={0: 0.1}).tolist() == est.sample(4, 0, given={0: 0.1}).tolist()
    assert len(trained) == 1
    copied = copy.deepcopy(est)
    np.testing.assert_array_equal(copied.density(holes).log_density, before)
    assert len(trained) == 1
    RoundtripDetector.from_density(est).save(tmp_path / "detector.rt")
    inner = load(tmp_path / "detector.rt").estimator_
    np.testing.assert_array_equal(inner.density(holes).log_density, before)
    assert len(trained) == 1


def test_files_without_it_load_as_before(X, holes, trained, tmp_path):
    est = Roundtrip(**TINY).fit(X)
    est.save(tmp_path / "without.rt")
    again = load(tmp_path / "without.rt")
    assert trained == []
    np.testing.assert_array_equal(again.density(holes).log_density, est.density(holes).log_density)
    assert len(trained) == 2


def test_mixed_tables_keep_it_in_files(trained, tmp_path):
    from fitted_oracles import MixedTable

    oracle = MixedTable()
    est = Roundtrip(**TINY, part_encoder=True).fit(oracle.learned)
    est.save(tmp_path / "mixed.rt")
    again = load(tmp_path / "mixed.rt")
    rows = oracle.learned[["colour", "visits"]].head()
    np.testing.assert_array_equal(again.density(rows).log_density, est.density(rows).log_density)
    assert len(trained) == 1


def test_conditional_densities_have_none(X, trained):
    Roundtrip(**TINY, part_encoder=True).fit(X, context=["a", "b"] * 150)
    assert trained == []


def test_it_is_left_out_if_its_time_is_too_short(fitted):
    fit = partial(fit_part_encoder, fitted.model_, 2, seed=0)
    assert fit(seconds=1e-3) is None
    assert fit(steps=TIMED_STEPS, seconds=1e-3) is not None  # it is done before its time is known


def test_the_time_of_a_fit_is_divided():
    now = time.perf_counter()
    assert TimeOfParts(False, None, now).parts == 0
    assert TimeOfParts(False, 600.0, now).training == pytest.approx(600, abs=1)
    assert TimeOfParts(True, 600.0, now).parts == pytest.approx(60)
    assert TimeOfParts("auto", None, now).parts == 0
    assert TimeOfParts("auto", None, now - 1000).parts == pytest.approx(50, abs=1)


def test_other_values_are_refused(X):
    with pytest.raises(ValueError, match="part_encoder must be one of 'auto', True, False, got 3"):
        Roundtrip(part_encoder=3).fit(X)
