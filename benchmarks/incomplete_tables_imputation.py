"""The imputations of incomplete_tables.py: each fills all missing cells of a table."""

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


def with_marks(frame):
    """The table with text as a column of zeros and ones for each level, and the levels by column.

    Cells that are missing are so in all columns of their levels.
    """
    numbers = frame.select_dtypes("number")
    parts, levels = [numbers], {}
    for name in frame.columns.difference(numbers.columns, sort=False):
        marks = pd.get_dummies(frame[name], dtype=np.float64)
        levels[name] = marks.columns.to_numpy()
        marks = marks.set_axis([f"{name}={level}" for level in marks], axis=1)
        parts.append(marks.mask(frame[name].isna()))
    return pd.concat(parts, axis=1), levels


def unmarked(filled, frame, levels):
    """The table that `with_marks` gave, once filled, with text again: the largest one decides."""
    result = {}
    for name in frame:
        if name in levels:
            marks = filled[[f"{name}={level}" for level in levels[name]]].to_numpy()
            result[name] = levels[name][marks.argmax(axis=1)]
        else:
            result[name] = filled[name].to_numpy()
    return pd.DataFrame(result)


def by_regression(frame, seed, python):
    """scikit-learn's IterativeImputer; text as zeros and ones, the largest of which decides."""
    joined, levels = with_marks(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        filled = IterativeImputer(random_state=seed).fit_transform(joined)
    return unmarked(pd.DataFrame(filled, columns=joined.columns), frame, levels)


def regression_draws(frame, seed, draws):
    """Tables of draws by IterativeImputer, with sample_posterior=True.

    It is fitted once; each call of `transform` draws anew.
    """
    joined, levels = with_marks(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        imputer = IterativeImputer(random_state=seed, sample_posterior=True).fit(joined)
    filled = [imputer.transform(joined) for _ in range(draws)]
    return [unmarked(pd.DataFrame(each, columns=joined.columns), frame, levels) for each in filled]


def by_miceforest(frame, seed, python):
    """Values of similar rows, by gradient-boosted trees."""
    return miceforest_tables(frame, seed, python, iterations=ITERATIONS, draws=1)[0]


def miceforest_tables(frame, seed, python, *, iterations, draws, draws_levels=False):
    """Tables by miceforest, of the last of so many iterations and of as many more as needed.

    With `draws_levels` levels are drawn from their probabilities instead of taken from similar
    rows, which fails if a probability is 1.
    """
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder, "incomplete.parquet"))
        request = {"seed": seed, "iterations": iterations, "draws": draws}
        request["draws_levels"] = draws_levels
        Path(folder, "request.json").write_text(json.dumps(request))
        subprocess.run(
            [python, SCRIPT, folder], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        return [pd.read_parquet(Path(folder, f"complete-{draw}.parquet")) for draw in range(draws)]


def like_known_cells(filled, frame, grids, seed):
    """Imputed numbers rounded as the known ones are, and known cells as they were."""
    rng = np.random.RandomState(seed)
    result = {}
    for name, cells in frame.items():
        values = filled[name]
        if name in grids:
            values = pd.Series(grids[name].rounded(values.to_numpy(np.float64), rng))
        result[name] = cells.where(cells.notna(), values.astype(cells.dtype))
    return pd.DataFrame(result)


def on_grid(impute):
    """Round imputed numbers as the known ones are, and leave known cells alone."""

    def imputed(frame, grids, seed, python):
        return like_known_cells(impute(frame, seed, python), frame, grids, seed)

    return imputed


IMPUTATIONS = {
    "mean": on_grid(by_mean),
    "IterativeImputer": on_grid(by_regression),
    MICEFOREST: on_grid(by_miceforest),
}
"""Each fills a table, given the rounding of its columns, a seed and the Python of miceforest."""
