"""The methods of imputation.py: each completes a table whose cells are missing.

A method returns a point for each missing cell, and perhaps draws and probabilities of levels.
Imputed numbers of all methods are rounded as the known cells of their column are, and limited to
their range.
"""

import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from incomplete_tables_imputation import (
    ITERATIONS,
    MICEFOREST,
    by_mean,
    by_regression,
    like_known_cells,
    miceforest_tables,
    regression_draws,
    unmarked,
    with_marks,
)
from mixed_tables_metrics import encoded
from parts_data import categories_of
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import KNNImputer

from roundtrip import DensityWarning, Roundtrip
from roundtrip.reproduce.fits import timed_fit

ROUNDTRIP = "Roundtrip"
DRAWS = 19
"""Draws of methods that draw: between the smallest and the largest of 19 draws lies another draw
from the same distribution with probability 18 / 20."""

NEIGHBOURS = 5
TREES, FOREST_ROUNDS, LEAF = 100, 5, 5
"""Trees of each forest, rounds over the columns at most, and fewest rows of a leaf of numbers."""


@dataclass(frozen=True)
class Imputed:
    """A completed table.

    Attributes
    ----------
    point : DataFrame
        Known cells, and the likeliest or mean value of the others.
    draws : list of DataFrame
        Tables completed by draws; empty if a method has none.
    probabilities : dict
        For columns of text, probabilities of levels: a row for each row of the table, of which
        those with a known cell mean nothing. Empty if a method has none.
    details : dict
        What else is recorded.
    """

    point: pd.DataFrame
    draws: list[pd.DataFrame] = field(default_factory=list)
    probabilities: dict[str, pd.DataFrame] = field(default_factory=dict)
    details: dict = field(default_factory=dict)


def mean(frame, seed, budget, python):
    """Means, and most frequent levels; their frequencies as probabilities."""
    shares = {name: frame[name].value_counts(normalize=True) for name in categories_of(frame)}
    probabilities = {
        name: pd.DataFrame([share] * len(frame), index=frame.index)
        for name, share in shares.items()
    }
    return Imputed(by_mean(frame, seed, python), [], probabilities)


def neighbours(frame, seed, budget, python):
    """scikit-learn's KNNImputer on standardised columns, text as columns of zeros and ones."""
    marked, levels = with_marks(frame)
    centre, spread = marked.mean(), marked.std(ddof=0).replace(0.0, 1.0)
    of_text = [name for name in marked if name not in frame]
    # Two levels then are at a distance of one standard deviation.
    centre[of_text], spread[of_text] = 0.0, np.sqrt(2)
    filled = KNNImputer(n_neighbors=NEIGHBOURS).fit_transform((marked - centre) / spread)
    filled = pd.DataFrame(filled, columns=marked.columns) * spread + centre
    return Imputed(unmarked(filled, frame, levels), [], _shares_of_marks(filled, levels))


def regression(frame, seed, budget, python):
    """scikit-learn's IterativeImputer: means, and draws of sample_posterior=True."""
    return Imputed(by_regression(frame, seed, python), regression_draws(frame, seed, DRAWS))


def forests(frame, seed, budget, python):
    """Random forests for one column after the other, as missForest does.

    Means and most frequent levels are the start. Rounds over the columns, from the one with the
    fewest missing cells on, end when imputed numbers change more than in the round before, or
    after `FOREST_ROUNDS`.
    """
    texts = categories_of(frame)
    X, _ = encoded(frame, texts)
    missing = np.isnan(X)
    filled, _ = encoded(by_mean(frame, seed, python), texts)
    places = {name: place for place, name in enumerate(frame)}
    levels = {name: np.sort(frame[name].dropna().unique()) for name in texts}
    order = [j for j in missing.sum(axis=0).argsort(kind="stable") if missing[:, j].any()]
    probabilities, last_change = {}, np.inf
    for _ in range(FOREST_ROUNDS):
        before, before_probabilities = filled.copy(), dict(probabilities)
        for j in order:
            known, other = ~missing[:, j], np.delete(filled, j, axis=1)
            settings = {"n_estimators": TREES, "max_features": "sqrt", "random_state": seed}
            if frame.columns[j] in texts:
                forest = RandomForestClassifier(**settings).fit(other[known], X[known, j])
                shares = forest.predict_proba(other[~known])
                filled[~known, j] = forest.classes_[shares.argmax(axis=1)]
                probabilities[frame.columns[j]] = pd.DataFrame(
                    shares,
                    index=frame.index[~known],
                    columns=levels[frame.columns[j]][forest.classes_.astype(int)],
                ).reindex(frame.index)
            else:
                forest = RandomForestRegressor(min_samples_leaf=LEAF, **settings)
                filled[~known, j] = forest.fit(other[known], X[known, j]).predict(other[~known])
        change = _change(before, filled, missing, [places[name] for name in texts])
        if change > last_change:
            filled, probabilities = before, before_probabilities
            break
        last_change = change
    result = {
        name: levels[name][filled[:, places[name]].astype(int)]
        if name in texts
        else filled[:, places[name]]
        for name in frame
    }
    return Imputed(pd.DataFrame(result), [], probabilities)


def _change(before, after, missing, texts):
    """Squared change of the missing numbers; of the levels if there are no numbers."""
    numbers = np.delete(np.arange(missing.shape[1]), texts)
    places = numbers if missing[:, numbers].any() else texts
    spread = np.maximum(after[:, places].std(axis=0), 1e-12)
    change = ((after - before)[:, places] / spread)[missing[:, places]]
    return float(np.square(change).sum())


def miceforest(frame, seed, budget, python):
    """Draws of successive iterations; means and most frequent levels of these as points."""
    draws = miceforest_tables(
        frame, seed, python, iterations=ITERATIONS, draws=DRAWS, draws_levels=True
    )
    return Imputed(_centre(frame, draws), draws)


def _centre(frame, draws):
    texts = categories_of(frame)
    result = {}
    for name in frame:
        values = pd.concat([draw[name] for draw in draws], axis=1)
        result[name] = values.mode(axis=1)[0] if name in texts else values.mean(axis=1)
    return pd.DataFrame(result)


def roundtrip(frame, seed, budget, python):
    """Roundtrip with default settings, fitted to the incomplete table."""
    est = Roundtrip(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = timed_fit(est, frame, max_time=budget)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DensityWarning)
        point = est.impute(frame)
        draws = est.impute(frame, draws=DRAWS, random_state=seed)
        probabilities = {
            name: est.conditional(frame[frame[name].isna()], name)
            .probabilities()
            .reindex(frame.index)
            for name in categories_of(frame)
            if frame[name].isna().any()
        }
    details = {
        **{name: fit[name] for name in ("fit_seconds", "epochs", "stopped_by")},
        "latent_dim": est.latent_dim_,
        "warnings": [str(each.message) for each in caught],
    }
    return Imputed(point, draws, probabilities, details)


def completed(method, frame, grids, seed, budget, python) -> Imputed:
    """Complete a table by one of `METHODS`."""
    imputed = METHODS[method](frame, seed, budget, python)
    alike = [
        like_known_cells(table, frame, grids, seed) for table in (imputed.point, *imputed.draws)
    ]
    return Imputed(alike[0], alike[1:], imputed.probabilities, imputed.details)


def _shares_of_marks(filled, levels):
    return {
        name: filled[[f"{name}={level}" for level in known]].set_axis(known, axis=1)
        for name, known in levels.items()
    }


METHODS = {
    "mean": mean,
    "KNN": neighbours,
    "IterativeImputer": regression,
    "random forests": forests,
    MICEFOREST: miceforest,
    ROUNDTRIP: roundtrip,
}
"""Each is given the table, a seed, the seconds of Roundtrip's fit and the Python of miceforest."""
