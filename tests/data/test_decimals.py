"""Decimal numbers of parquet files are numbers."""

from decimal import Decimal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from roundtrip.data import Schema
from roundtrip.data.tables import read_table


def test_decimals_of_parquet_files_are_numbers(tmp_path):
    amounts = [Decimal(number) / 100 for number in range(40)]
    frame = pd.DataFrame({"amount": amounts, "size": np.arange(40.0) ** 1.3})
    frame.to_parquet(tmp_path / "amounts.parquet")
    table = read_table(tmp_path / "amounts.parquet")
    schema, rows = Schema.fit(BaseEstimator(), table, None, scale="standard")
    assert schema.described()["amount"].kind == "number"
    assert schema.resolution[0] == 0.01
    np.testing.assert_allclose(schema.values(rows.x)[:, 0], np.arange(40) / 100, atol=1e-12)
