"""The imputations of incomplete_tables.py: each fills all missing cells of a table once."""

import json
import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

MICEFOREST = "miceforest"
ITERATIONS = 5
"""Of miceforest."""

SCRIPT = Path(__file__).with_name("incomplete_tables_miceforest.py")


def by_mean(frame, seed, python):
    """Mean of the known cells; for text the most frequent level."""
    numbers = frame.select_dtypes("number").columns
    return frame.fillna(
        {
            name: cells.mean() if name in numbers else cells.mode()[0]
            for name, cells in frame.items()
        }
    )


def by_regression(frame, seed, python):
    """scikit-learn's IterativeImputer; text as zeros and ones, the largest of which decides."""
    numbers = frame.select_dtypes("number")
    texts = [name for name in frame if name not in numbers]
    parts, levels = [numbers], {}
    for name in texts:
        marks = pd.get_dummies(frame[name], dtype=np.float64)
        levels[name] = marks.columns.to_numpy()
        marks = marks.set_axis([f"{name}={level}" for level in marks], axis=1)
        parts.append(marks.mask(frame[name].isna()))
    joined = pd.concat(parts, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = IterativeImputer(random_state=seed).fit_transform(joined)
    filled = pd.DataFrame(filled, columns=joined.columns)
    result = filled[numbers.columns]
    for name in texts:
        marks = filled[[f"{name}={level}" for level in levels[name]]].to_numpy()
        result = result.assign(**{name: levels[name][marks.argmax(axis=1)]})
    return result


def by_miceforest(frame, seed, python):
    """Values of similar rows, by gradient-boosted trees."""
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder, "incomplete.parquet"))
        request = {"seed": seed, "iterations": ITERATIONS}
        Path(folder, "request.json").write_text(json.dumps(request))
        subprocess.run(
            [python, SCRIPT, folder], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        return pd.read_parquet(Path(folder, "complete.parquet"))


def on_grid(impute):
    """Round imputed numbers as the known ones are, and leave known cells alone."""

    def imputed(frame, grids, seed, python):
        filled = impute(frame, seed, python)
        rng = np.random.RandomState(seed)
        result = {}
        for name, cells in frame.items():
            values = filled[name]
            if name in grids:
                values = pd.Series(grids[name].rounded(values.to_numpy(np.float64), rng))
            result[name] = cells.where(cells.notna(), values.astype(cells.dtype))
        return pd.DataFrame(result)

    return imputed


IMPUTATIONS = {
    "mean": on_grid(by_mean),
    "IterativeImputer": on_grid(by_regression),
    MICEFOREST: on_grid(by_miceforest),
}
"""Each fills a table, given the rounding of its columns, a seed and the Python of miceforest."""
