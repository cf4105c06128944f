"""Real tables with outliers of known kinds planted in them: labels that are nobody's to see."""

import numpy as np

from roundtrip.datasets import load_arem, load_bank, load_casp

TABLES = {"AReM": load_arem, "CASP": load_casp, "BANK": load_bank}
KINDS = ("cluster", "inner cluster", "scattered", "mixed up")
SHARE, ROWS = 0.05, 5000
NEAREST, FARTHEST = 4, 8
"""Standard deviations from the median of a column where values far out lie."""

SPREAD = 0.1
"""Of a cluster, in standard deviations of the columns."""

CONSTANTS = [SHARE, ROWS, NEAREST, FARTHEST, SPREAD]
"""Everything that results depend on besides table, kind and seed; part of the key of a result."""


def planted(table, kind, seed, data_home):
    """Training rows, test rows and which of the test rows were planted; `ROWS` of each at most.

    A twentieth of both, all of one kind: in one tight cluster, with half of the features far out;
    in a tight cluster in the midst of the data, where each feature is usual but not all together;
    each with a third of the features far out, in directions of its own; or with every feature
    taken from another row, so that only their dependence is wrong.
    """
    random = np.random.default_rng(seed)
    data = TABLES[table](data_home=data_home, random_state=seed)
    rows = random.permutation(np.concatenate([data.train, data.validation]))[: 2 * ROWS]
    odd = random.random(len(rows)) < SHARE
    rows[odd] = MAKE[kind](rows, int(odd.sum()), random)
    half = len(rows) // 2
    return rows[:half], rows[half:], odd[half:]


def _far_out(rows, size, random):
    """Values many standard deviations from the median of their columns."""
    distance = random.uniform(NEAREST, FARTHEST, size=size) * random.choice([-1, 1], size=size)
    return np.median(rows, axis=0) + distance * rows.std(axis=0)


def _cluster(rows, count, random):
    features = rows.shape[1]
    centre = rows[random.integers(len(rows))].copy()
    moved = random.permutation(features)[: max(1, features // 2)]
    centre[moved] = _far_out(rows, features, random)[moved]
    return centre + SPREAD * rows.std(axis=0) * random.normal(size=(count, features))


def _inner_cluster(rows, count, random):
    centre = _mixed_up(rows, 1, random)
    return centre + SPREAD * rows.std(axis=0) * random.normal(size=(count, rows.shape[1]))


def _scattered(rows, count, random):
    odd = rows[random.integers(len(rows), size=count)].copy()
    moved = random.random(odd.shape).argsort(axis=1) < max(1, rows.shape[1] // 3)
    odd[moved] = _far_out(rows, odd.shape, random)[moved]
    return odd


def _mixed_up(rows, count, random):
    return np.stack([random.choice(column, count) for column in rows.T], axis=1)


MAKE = dict(zip(KINDS, (_cluster, _inner_cluster, _scattered, _mixed_up), strict=True))
