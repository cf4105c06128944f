"""How much samples of a mixed table look like test rows: three figures and a guard.

All take tables with the same columns. Types need not agree: categories are compared as text, other
columns as numbers. Gradient-boosted trees are scikit-learn's with default settings but without
early stopping, on one thread, with categories as such and missing cells as they are.
"""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

FOLDS = 2
"""Half of the rows train the trees that tell samples from test rows, the others judge them."""

MISSING = "missing cells of "
"""Prefix of the columns that say where a number is missing."""


def plain(frame: pd.DataFrame, categories: list[str]) -> pd.DataFrame:
    """The same table with categories as text and all else as floats; missing cells are missing."""
    columns = {}
    for name in frame:
        cells = frame[name]
        if name in categories:
            # A code is the same whether a method returns 3, 3.0 or "3".
            known = cells[cells.notna()].astype(object)
            columns[name] = known.map(_as_text).reindex(cells.index)
        else:
            columns[name] = pd.to_numeric(cells, errors="coerce").astype(float)
    return pd.DataFrame(columns).astype(dict.fromkeys(categories, object))


def _as_text(value) -> str:
    number = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if number else str(value)


def indistinguishability(
    samples: pd.DataFrame, test: pd.DataFrame, categories: list[str], seed: int
) -> float:
    """1 if trees cannot tell samples from test rows, 0 if they always can.

    1 - 2 max(0, A - 0.5), where A is the area under the ROC curve of gradient-boosted trees, the
    mean over the folds of cross-validation. There should be as many samples as test rows.
    """
    samples, test = plain(samples, categories), plain(test, categories)
    X, categorical = encoded(pd.concat([samples, test], ignore_index=True), categories)
    y = np.repeat([0, 1], [len(samples), len(test)])
    areas = []
    for train, held_out in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        trees = _trees(HistGradientBoostingClassifier, categorical, seed)
        with threadpool_limits(1):
            trees.fit(X[train], y[train])
            areas.append(roc_auc_score(y[held_out], trees.predict_proba(X[held_out])[:, 1]))
    return 1 - 2 * max(0.0, float(np.mean(areas)) - 0.5)


def usefulness(
    samples: pd.DataFrame, test: pd.DataFrame, categories: list[str], target: str, seed: int
) -> float:
    """Score on test rows of gradient-boosted trees trained on samples.

    The area under the ROC curve if the target is a category, which must have two levels among the
    test rows; R2 if it is a number. Rows without the target are left out. Samples with other levels
    of the target are, too; with one level alone the area is 0.5.
    """
    samples, test = (plain(each, categories).dropna(subset=[target]) for each in (samples, test))
    if target in categories:
        levels = sorted(test[target].unique())
        samples = samples[samples[target].isin(levels)]
        if samples[target].nunique() < 2:
            return 0.5
    features = [name for name in categories if name != target]
    both = pd.concat([samples, test], ignore_index=True)
    X, categorical = encoded(both.drop(columns=target), features)
    train, held_out = np.split(np.arange(len(both)), [len(samples)])
    with threadpool_limits(1):
        if target in categories:
            y = (both[target] == levels[1]).to_numpy()
            trees = _trees(HistGradientBoostingClassifier, categorical, seed).fit(
                X[train], y[train]
            )
            return float(roc_auc_score(y[held_out], trees.predict_proba(X[held_out])[:, 1]))
        y = both[target].to_numpy()
        trees = _trees(HistGradientBoostingRegressor, categorical, seed).fit(X[train], y[train])
        return float(r2_score(y[held_out], trees.predict(X[held_out])))


def encoded(frame: pd.DataFrame, categories: list[str]) -> tuple[np.ndarray, list[bool]]:
    """Numbers for trees, levels as whole numbers from 0, and which columns are categories."""
    columns = [
        np.where(frame[name].isna(), np.nan, pd.factorize(frame[name], sort=True)[0])
        if name in categories
        else frame[name].to_numpy(float)
        for name in frame
    ]
    return np.column_stack(columns), [name in categories for name in frame]


def _trees(kind, categorical: list[bool], seed: int):
    return kind(categorical_features=categorical, early_stopping=False, random_state=seed)


def association_error(samples: pd.DataFrame, test: pd.DataFrame, categories: list[str]) -> float:
    """Mean absolute difference of the associations of all pairs of columns.

    See `associations`. There should be as many samples as test rows: Cramer's V and the correlation
    ratio of unrelated columns are above 0 by an amount that depends on the number of rows.
    """
    incomplete = [name for name in test if name not in categories and test[name].isna().any()]
    ours, theirs = (associations(each, categories, incomplete) for each in (samples, test))
    return float(np.mean([abs(ours[pair] - theirs[pair]) for pair in theirs]))


def associations(
    frame: pd.DataFrame, categories: list[str], incomplete: list[str]
) -> dict[tuple[str, str], float]:
    """Association of each pair of columns: 0 if unrelated, 1 or -1 if one determines the other.

    Of two numbers Spearman's correlation; of two categories Cramer's V; of a number and a category
    the correlation ratio of the number's ranks. A missing category is a level of its own. Numbers
    are compared where they are known, and each of `incomplete` has a further column, a category
    that says where it is missing. A column that does not vary is unrelated to all others.
    """
    frame = plain(frame, categories)
    codes = {name: pd.factorize(frame[name], use_na_sentinel=False)[0] for name in categories}
    codes |= {MISSING + name: frame[name].isna().to_numpy().astype(int) for name in incomplete}
    numbers = {name: frame[name].to_numpy() for name in frame if name not in categories}
    result = {}
    for a, b in combinations([*numbers, *codes], 2):
        if b == MISSING + a:
            continue  # a number is never known where it is missing
        if a in codes:
            value = _cramers_v(codes[a], codes[b])
        elif b in codes:
            known = ~np.isnan(numbers[a])
            value = _correlation_ratio(numbers[a][known], codes[b][known])
        else:
            known = ~np.isnan(numbers[a] + numbers[b])
            value = _spearman(numbers[a][known], numbers[b][known])
        result[a, b] = value
    return result


def _spearman(x: np.ndarray, y: np.ndarray) -> float:
    if not (_varies(x) and _varies(y)):
        return 0.0
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _cramers_v(a: np.ndarray, b: np.ndarray) -> float:
    counts = pd.crosstab(a, b).to_numpy()
    smaller = min(counts.shape) - 1
    if smaller < 1:
        return 0.0
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / counts.sum()
    return float(np.sqrt(((counts - expected) ** 2 / expected).sum() / counts.sum() / smaller))


def _correlation_ratio(x: np.ndarray, groups: np.ndarray) -> float:
    if not (_varies(x) and _varies(groups)):
        return 0.0
    ranks = pd.Series(rankdata(x))
    between = ranks.groupby(groups).transform("mean")
    return float(between.std(ddof=0) / ranks.std(ddof=0))


def _varies(values: np.ndarray) -> bool:
    return len(values) > 0 and bool((values != values[0]).any())


def copies(samples: pd.DataFrame, train: pd.DataFrame, categories: list[str]) -> float:
    """Share of samples that equal a training row in all columns.

    A method that repeats its training rows would pass all other figures. Test rows have a share,
    too.
    """
    ours, theirs = (
        pd.util.hash_pandas_object(plain(each, categories), index=False)
        for each in (samples, train)
    )
    return float(ours.isin(theirs).mean())
