"""Fit arfpy to a table and draw samples; called by mixed_tables_methods.py.

Runs in the environment of mixed-tables-requirements.txt.
"""

import time
import warnings

import numpy as np
import pandas as pd
from arfpy.arf import arf
from mixed_tables_peers import run
from pandas.api.types import is_integer_dtype

MISSING = "missing cell"
"""Level of missing categories."""

INDICATOR = "missing cells of "
"""Prefix of columns that say where a number is missing."""

MOST_ROUNDS, MOST_DECIMALS = 10, 6


class Deadline(int):
    """The number of rounds that arfpy may do, until a time; then all rounds are done.

    arfpy compares its count of rounds with `max_iters` after each, and cannot be stopped otherwise.
    """

    def __new__(cls, rounds, seconds):
        self = super().__new__(cls, rounds)
        self.end = time.perf_counter() + seconds
        return self

    def __le__(self, count):  # of `count >= max_iters`
        return time.perf_counter() >= self.end or int(self) <= count


def fit_and_sample(train, request):
    warnings.simplefilter("ignore")
    np.random.seed(request["seed"])
    table, numbers = {}, []
    for name in train:
        cells = train[name]
        if name in request["categories"]:
            table[name] = cells.astype(object).where(cells.notna(), MISSING).astype(str)
            continue
        numbers.append(name)
        missing = cells.isna()
        filled = cells.to_numpy(float, copy=True)
        table[name] = filled
        if missing.any():
            # Drawn from the known cells, which keeps the margin.
            filled[missing] = np.random.choice(cells[~missing], missing.sum())
            table[INDICATOR + name] = missing.map({True: "yes", False: "no"})
    complete = pd.DataFrame(table)
    for name in complete:
        if name not in numbers:
            complete[name] = complete[name].astype("category")
    deadline = Deadline(MOST_ROUNDS, request["budget"])
    forest = arf(
        complete,
        max_iters=deadline,
        verbose=False,
        n_jobs=request["threads"],
        random_state=request["seed"],
    )
    forest.forde()

    def sample(rows):
        drawn = forest.forge(rows)
        columns = {}
        for name in train:
            cells = drawn[name]
            if name in numbers:
                known = train[name].dropna()
                cells = cells.astype(float).clip(known.min(), known.max()).round(decimals(known))
                if INDICATOR + name in drawn:
                    cells = cells.mask(drawn[INDICATOR + name].astype(str) == "yes")
                elif is_integer_dtype(known):
                    cells = cells.astype(known.dtype)
            else:
                cells = cells.astype(object).where(cells.astype(str) != MISSING, None)
            columns[name] = cells
        return pd.DataFrame(columns)

    return {"rounds": len(forest.acc) - 1, "accuracy": [float(each) for each in forest.acc]}, sample


def decimals(values):
    """Fewest decimals that write all values."""
    for digits in range(MOST_DECIMALS):
        if np.allclose(values, values.round(digits), rtol=0, atol=1e-9):
            return digits
    return MOST_DECIMALS


if __name__ == "__main__":
    run(fit_and_sample, ["arfpy", "scikit-learn"])
