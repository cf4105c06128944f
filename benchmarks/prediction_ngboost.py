"""Fit NGBoost to one column; called by prediction.py.

Runs in the environment of prediction-requirements.txt.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from ngboost import NGBRegressor
from ngboost.distns import Normal

folder = Path(sys.argv[1])
request = json.loads((folder / "request.json").read_text())
train, test = (pd.read_parquet(folder / f"{name}.parquet") for name in ("train", "test"))
y = train.pop(request["target"]).to_numpy()
X, new = train.to_numpy(), test.drop(columns=request["target"]).to_numpy()
held_out = np.random.default_rng(request["seed"]).random(len(X)) < request["validation"]
model = NGBRegressor(
    Dist=Normal,
    n_estimators=request["trees"],
    learning_rate=request["rate"],
    random_state=request["seed"],
    verbose=False,
)
model.fit(
    X[~held_out],
    y[~held_out],
    X_val=X[held_out],
    Y_val=y[held_out],
    early_stopping_rounds=request["patience"],
)
found = model.pred_dist(new, max_iter=model.best_val_loss_itr)
pd.DataFrame({"mean": found.loc, "std": found.scale}).to_parquet(folder / "found.parquet")
