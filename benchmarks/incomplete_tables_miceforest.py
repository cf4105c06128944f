"""Impute a table by miceforest; called by incomplete_tables_imputation.py.

Runs in the environment of incomplete-tables-requirements.txt.
"""

import json
import sys
from pathlib import Path

import miceforest
import pandas as pd
from pandas.api.types import is_numeric_dtype

folder = Path(sys.argv[1])
request = json.loads((folder / "request.json").read_text())
frame = pd.read_parquet(folder / "incomplete.parquet")
texts = [name for name in frame if not is_numeric_dtype(frame[name])]
frame = frame.astype(dict.fromkeys(texts, "category"))
# LightGBM refuses some characters in names.
names = list(frame.columns)
frame.columns = [f"x{place}" for place in range(len(names))]
kernel = miceforest.ImputationKernel(frame, num_datasets=1, random_state=request["seed"])
kernel.mice(request["iterations"], num_threads=1)
filled = kernel.complete_data(0).set_axis(names, axis=1)
filled.astype(dict.fromkeys(texts, str)).to_parquet(folder / "complete.parquet")
