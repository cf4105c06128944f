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
strategy = "normal"
if request["draws_levels"]:
    drawn = [column for column, name in zip(frame, names, strict=True) if name in texts]
    strategy = {column: "fast" if column in drawn else "normal" for column in frame}
kernel = miceforest.ImputationKernel(
    frame, num_datasets=1, mean_match_strategy=strategy, random_state=request["seed"]
)
kernel.mice(request["iterations"] + request["draws"] - 1, num_threads=1)
for draw in range(request["draws"]):
    filled = kernel.complete_data(0, iteration=request["iterations"] + draw).set_axis(names, axis=1)
    filled = filled.astype(dict.fromkeys(texts, str))
    filled.to_parquet(folder / f"complete-{draw}.parquet")
