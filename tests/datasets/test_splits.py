"""Every row is in exactly one part, groups stay whole, sizes are those of the paper."""

import numpy as np
import pytest

from roundtrip.datasets.preparation import min_max, spread
from roundtrip.datasets.splits import draw_validation, split_groups, split_rows

# rows of a set: train, validation and test rows in the paper's tables S1 and S2
PAPER_SIZES = {
    42_239: (34_215, 3_801, 4_223),
    45_730: (37_042, 4_115, 4_573),
    45_211: (36_621, 4_069, 4_521),
    515_345: (417_430, 46_381, 51_534),
    49_097: (39_770, 4_418, 4_909),
    11_183: (9_059, 1_006, 1_118),
    286_048: (231_700, 25_744, 28_604),
}


@pytest.mark.parametrize(("n_rows", "sizes"), PAPER_SIZES.items())
def test_sizes_of_the_paper(n_rows, sizes, rng):
    parts = split_rows(n_rows, rng)
    assert tuple(map(len, parts)) == sizes
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n_rows))


def test_split_is_random_and_repeatable():
    first, again, other = (split_rows(1000, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.test, other.test)


@pytest.mark.parametrize("seed", range(20))
def test_groups_stay_whole(seed):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(50), rng.integers(5, 40, size=50)))
    parts = split_groups(groups, rng)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(groups)))
    sets = [set(groups[rows]) for rows in parts]
    assert not sets[0] & sets[1]
    assert not sets[0] & sets[2]
    assert not sets[1] & sets[2]
    shares = np.array([len(rows) for rows in parts]) / len(groups)
    assert np.allclose(shares, [0.81, 0.09, 0.1], atol=0.04)  # two groups have up to 6 %
    assert (np.diff(parts.train) < 0).any()  # rows of a group don't come one after the other


def test_drawn_validation_rows(rng):
    train, validation = draw_validation(60, 10, rng)
    assert len(validation) == 10
    assert np.array_equal(np.sort(np.concatenate([train, validation])), np.arange(60))


def test_spread_only_within_the_step(rng):
    X = np.arange(3000.0).reshape(-1, 3)
    moved = spread(X, 0.5, rng, columns=[0, 2]) - X
    assert np.abs(moved[:, [0, 2]]).max() == pytest.approx(0.5, abs=0.01)
    assert np.abs(moved[:, [0, 2]]).max() <= 0.5
    assert moved[:, [0, 2]].mean() == pytest.approx(0, abs=0.05)
    assert not moved[:, 1].any()
    assert X[0, 0] == 0  # the argument is left alone


def test_min_max_is_affine(rng):
    X = rng.normal(size=(50, 2)) * [1, 100] + [5, -3]
    scaled = min_max(X)
    assert np.array_equal(scaled.min(axis=0), [0, 0])
    assert np.array_equal(scaled.max(axis=0), [1, 1])
    assert np.allclose(scaled * np.ptp(X, axis=0) + X.min(axis=0), X)
