"""Fit mostlyai-engine to a table and draw samples; called by mixed_tables_methods.py.

Runs in the environment of mixed-tables-requirements.txt.
"""

import time
from pathlib import Path

import pandas as pd
import torch
from mixed_tables_peers import run
from mostlyai import engine
from mostlyai.engine.logging import disable_logging
from pandas.api.types import is_numeric_dtype


def fit_and_sample(train, request):
    start = time.perf_counter()
    torch.set_num_threads(request["threads"])
    disable_logging()
    engine.set_random_state(request["seed"])
    workspace = Path(request["folder"], "workspace")
    # Text is a category in any case.
    codes = [name for name in request["categories"] if is_numeric_dtype(train[name])]
    engine.split(
        train,
        tgt_encoding_types=dict.fromkeys(codes, "TABULAR_CATEGORICAL"),
        model_type="TABULAR",
        workspace_dir=workspace,
    )
    engine.analyze(value_protection=False, workspace_dir=workspace)
    engine.encode(workspace_dir=workspace)
    seconds = request["budget"] - (time.perf_counter() - start)
    engine.train(max_training_time=seconds / 60, device="cpu", workspace_dir=workspace)

    def sample(rows):
        engine.generate(sample_size=rows, device="cpu", workspace_dir=workspace)
        files = sorted((workspace / "SyntheticData").glob("*.parquet"))
        return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)

    progress = pd.read_csv(workspace / "ModelStore" / "model-data" / "progress-messages.csv")
    return {"epochs": float(progress["epoch"].max())}, sample


if __name__ == "__main__":
    run(fit_and_sample, ["mostlyai-engine", "torch"])
