"""Dates in tables that an estimator returns."""

import numpy as np
import pandas as pd
import pytest
from conftest import TINY

from roundtrip import Roundtrip


@pytest.mark.parametrize("holes", [False, True])
def test_rows_from_codes_have_dates_with_or_without_missing_cells(holes):
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2020-01-01")
    table = pd.DataFrame(
        {
            "hired": start + pd.to_timedelta(rng.integers(900, size=200), "D"),
            "size": rng.normal(size=200),
        }
    )
    if holes:
        table.loc[0, "size"] = np.nan
    rows = Roundtrip(latent_dim=1, **TINY).fit(table).inverse_transform([[0.0], [1.0]])
    assert rows["hired"].dtype == table["hired"].dtype
    assert rows["hired"].between("2019-01-01", "2024-01-01").all()


def test_rows_from_codes_of_a_table_of_numbers_are_an_array():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
    rows = Roundtrip(latent_dim=1, **TINY).fit(table).inverse_transform([[0.0]])
    assert isinstance(rows, np.ndarray)
