import numpy as np

from roundtrip.density.result import DensityEstimate


def estimate(rows):
    zeros = np.zeros(rows)
    converged = np.ones(rows, dtype=bool)
    return DensityEstimate(-np.arange(rows), zeros, zeros, zeros, zeros, converged, "adaptive")


def test_rows_with_unseen_levels_are_marked():
    plain = estimate(3)
    assert plain.marked(np.zeros(3, dtype=bool)) is plain
    assert "unseen_level" not in plain.to_frame()
    marked = plain.marked(np.array([False, True, False]))
    assert marked.to_frame()["unseen_level"].tolist() == [False, True, False]
    assert marked.summary() == plain.summary() + "\n1 row has a level that fit has not seen"
    assert marked.taken(np.array([1, 0])).unseen_level.tolist() == [True, False]


def test_every_row_may_have_a_factor_of_its_own():
    shifted = estimate(3).shifted(np.array([0.0, 1.0, 5.0]))
    assert shifted.log_density.tolist() == [0, 0, 3]
