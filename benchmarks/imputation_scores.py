"""The figures of imputation.py: how close a completed table is to the true one.

Numbers count in standard deviations of their column in the true table. All cells that were hidden
count alike.
"""

import numpy as np
import pandas as pd
from mixed_tables_metrics import usefulness
from parts_data import categories_of
from scipy.spatial.distance import cdist

MARGINAL_WEIGHT = 0.05
"""Weight of the frequencies of known cells in all probabilities of levels, so that no logarithm of
0 counts."""

DOWNSTREAM_TEST = 0.2
"""Share of the rows, the last ones, whose true cells test a model of the completed other ones."""


def crps(draws, truth):
    """CRPS of the distribution that draws, `(draws, cells)`, come from, without bias; `(cells,)`.

    E|X - y| - E|X - X'| / 2. One draw counts as a point mass: the absolute error.
    """
    error = np.abs(draws - truth).mean(axis=0)
    number = len(draws)
    if number == 1:
        return error
    # Of sorted draws, the k-th of n is counted 2k - n + 1 times in the sum of all differences.
    places = 2 * np.arange(number) - number + 1
    pairs = (places[:, None] * np.sort(draws, axis=0)).sum(axis=0)
    return error - pairs / (number * (number - 1))


def inside(draws, truth, rng):
    """Whether truth lies strictly between the ends of draws, `(cells,)`; ties by chance.

    If truth and draws come from one distribution, it does with probability
    (draws - 1) / (draws + 1), also where values repeat.
    """
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    rank = below + rng.integers(0, equal + 1)
    return (rank > 0) & (rank < len(draws))


def log_scores(probabilities, known, truth):
    """Log probability of the true levels, `(cells,)`.

    Parameters
    ----------
    probabilities : DataFrame
        A row for each cell, a column for each level.
    known : Series
        Known cells of the column, whose frequencies are mixed in.
    truth : Series
        True levels.
    """
    levels = sorted(set(known) | set(truth))
    counts = known.value_counts().reindex(levels, fill_value=0) + 1
    said = probabilities.reindex(columns=levels, fill_value=0.0).fillna(0.0)
    said = said.div(said.sum(axis=1), axis=0)
    mixed = (1 - MARGINAL_WEIGHT) * said + MARGINAL_WEIGHT * counts / counts.sum()
    places = pd.Index(levels).get_indexer(truth)
    return np.log(mixed.to_numpy()[np.arange(len(truth)), places])


def shares(tables, name, rows):
    """Share of the tables that have each level, `(rows, levels)`."""
    values = pd.concat([table.loc[rows, name] for table in tables], axis=1)
    return pd.DataFrame(
        {level: (values == level).mean(axis=1) for level in pd.unique(values.to_numpy().ravel())}
    )


def energy_distance(completed, truth, categories):
    """Energy distance of two tables: 0 if they have the same rows in any order.

    Numbers in standard deviations of the true table; two levels are at a distance of 1.
    """
    a, b = (_coordinates(table, truth, categories) for table in (completed, truth))
    return float(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean())


def _coordinates(table, truth, categories):
    parts = []
    for name in truth:
        if name in categories:
            levels = np.sort(truth[name].unique())
            parts.append((table[name].to_numpy()[:, None] == levels) / np.sqrt(2))
        else:
            parts.append(table[name].to_numpy()[:, None] / spread_of(truth[name]))
    return np.hstack(parts)


def spread_of(cells):
    spread = cells.std(ddof=0)
    return spread if spread > 0 else 1.0


def scores(truth, incomplete, imputed, *, target, seed):
    """All figures of one completed table; None where a method or a table has none."""
    categories = categories_of(truth)
    rng = np.random.default_rng(seed)
    tables = imputed.draws or [imputed.point]
    errors, continuous, covered, right, logs, of_column = [], [], [], [], [], {}
    for name in truth:
        rows = incomplete[name].isna()
        if not rows.any():
            continue
        true = truth.loc[rows, name]
        if name in categories:
            hit = (imputed.point.loc[rows, name] == true).to_numpy()
            said = imputed.probabilities.get(name)
            said = shares(tables, name, rows) if said is None else said.loc[rows]
            score = log_scores(said, incomplete[name].dropna(), true)
            right.append(hit)
            logs.append(score)
            of_column[name] = [float(hit.mean()), float(score.mean())]
        else:
            spread = spread_of(truth[name])
            point = imputed.point.loc[rows, name].to_numpy()
            drawn = np.stack([table.loc[rows, name].to_numpy() for table in tables])
            error = (point - true.to_numpy()) / spread
            each = crps(drawn, true.to_numpy()) / spread
            errors.append(error)
            continuous.append(each)
            if imputed.draws:
                covered.append(inside(drawn, true.to_numpy(), rng))
            of_column[name] = [float(np.sqrt(np.square(error).mean())), float(each.mean())]
    mse = _mean([np.square(each) for each in errors])
    return {
        "mse": mse,
        "rmse": float(np.sqrt(mse)),
        "crps": _mean(continuous),
        "accuracy": _mean(right),
        "log_score": _mean(logs),
        "coverage": _mean(covered),
        "energy": energy_distance(tables[0], truth, categories),
        "downstream": _downstream(imputed.point, truth, incomplete, target, seed),
        "of_column": of_column,
    }


def _downstream(completed, truth, incomplete, target, seed):
    """Score of trees on true rows, trained on completed rows whose target was known."""
    test = round(DOWNSTREAM_TEST * len(truth))
    train = completed.assign(**{target: incomplete[target]})[:-test].dropna(subset=[target])
    return usefulness(train, truth[-test:], categories_of(truth), target, seed)


def _mean(parts):
    values = np.concatenate(parts) if parts else np.array([])
    return float(values.mean()) if len(values) else None
