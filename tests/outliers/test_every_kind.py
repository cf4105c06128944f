"""The default detector of complete numbers: outside, holes, sparse places, broken dependences."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.metrics import average_precision_score

from roundtrip import RoundtripDetector, load
from roundtrip.outliers.gaussians import Gaussians
from roundtrip.outliers.neighbours import Neighbours
from roundtrip.outliers.robust_columns import RobustColumns
from roundtrip.outliers.tails import Tails

NAMES = [f"f{j}" for j in range(8)]


def dependent(rng, rows):
    """Eight features that follow two hidden numbers."""
    mixing = np.random.default_rng(5).normal(size=(2, 8))
    return rng.normal(size=(rows, 2)) @ mixing + 0.1 * rng.normal(size=(rows, 8))


def ring(rng, rows):
    angle = rng.uniform(0, 2 * np.pi, rows)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return circle + 0.07 * rng.normal(size=(rows, 2))


@pytest.fixture(scope="module")
def of_ring():
    return RoundtripDetector(random_state=0).fit(ring(np.random.default_rng(1), 1500))


@pytest.fixture(scope="module")
def of_dependent():
    X = pd.DataFrame(dependent(np.random.default_rng(1), 1500), columns=NAMES)
    return RoundtripDetector(random_state=0).fit(X)


def test_the_centre_of_a_ring_is_odder_than_nearly_all_rows(of_ring, rng):
    usual = of_ring.score_samples(ring(rng, 1000))
    centre = np.zeros((1, 2))
    assert (usual > of_ring.score_samples(centre)).mean() > 0.99
    assert of_ring.predict(centre) == -1
    assert of_ring.explain(centre).kind == ("in a hole",)
    assert of_ring.explain([[30.0, 0.0]]).kind == ("outside",)


def test_the_gaps_between_clusters_are_odd(rng):
    def clusters(rows):
        return rng.integers(3, size=(rows, 2)) + 0.06 * rng.normal(size=(rows, 2))

    detector = RoundtripDetector(random_state=0).fit(clusters(2000))
    usual, gap = detector.score_samples(clusters(1000)), detector.score_samples([[0.5, 0.5]])
    assert (usual > gap).mean() > 0.97


def test_single_bad_cells_are_found_named_and_explained(rng):
    X = dependent(rng, 1500)
    rows, cells = rng.choice(1500, 15, replace=False), rng.integers(8, size=15)
    X[rows, cells] += 8 * X.std(axis=0)[cells] * rng.choice([-1, 1], size=15)
    bad = np.isin(np.arange(1500), rows)
    detector = RoundtripDetector(random_state=0).fit(X)
    assert average_precision_score(bad, -detector.score_samples(X)) > 0.9
    explanation = detector.explain(X[rows])
    named = [int(names[0][1:]) for names in explanation.named(1)]
    assert np.mean(named == cells) > 0.9
    places = np.arange(15), cells
    low, high = explanation.usual_low[places], explanation.usual_high[places]
    assert ((X[rows, cells] < low) | (X[rows, cells] > high)).all()


def test_usual_values_that_do_not_go_together_are_a_broken_combination(of_dependent, rng):
    row = pd.DataFrame(dependent(rng, 1), columns=NAMES)
    before = of_dependent.score_samples(row)[0]
    clean = dependent(rng, 1000)
    row.iloc[0, 3] = np.quantile(clean[:, 3], 0.9 if row.iloc[0, 3] < 0 else 0.1)
    assert of_dependent.score_samples(row)[0] < before - 5
    explanation = of_dependent.explain(row)
    assert explanation.kind == ("broken combination",)
    assert explanation.named(1) == [["f3"]]
    assert explanation.sentences(1)[0].startswith("broken combination: f3 ")


def test_usual_ranges_hold_their_share_of_clean_values(of_dependent, rng):
    X = dependent(rng, 1000)
    explanation = of_dependent.explain(pd.DataFrame(X, columns=NAMES))
    inside = (explanation.usual_low <= X) & (explanation.usual_high >= X)
    assert 0.88 < inside.mean() < 0.995  # the noise of the density widens them


def test_a_cluster_of_outliers_in_the_training_rows_is_found(rng):
    X = np.concatenate([rng.normal(size=(1000, 5)), 5 + 0.05 * rng.normal(size=(50, 5))])
    detector = RoundtripDetector(random_state=0).fit(X)
    odd = np.repeat([False, True], [1000, 50])
    assert average_precision_score(odd, -detector.score_samples(X)) > 0.99
    assert detector.n_trimmed_ >= 30


def test_told_that_the_rows_are_clean_nothing_is_trimmed(rng):
    X = np.concatenate([rng.normal(size=(400, 2)), 6 + 0.3 * rng.normal(size=(40, 2))])
    detector = RoundtripDetector(clean=True, random_state=0).fit(X)
    assert detector.n_trimmed_ == 0
    assert detector.predict([[0.0, 0.0], [3.0, 12.0]]).tolist() == [1, -1]


@pytest.mark.parametrize("features", [1, 2, 5, 20, 50])
def test_few_clean_rows_are_called_outliers_with_any_number_of_columns(features, rng):
    detector = RoundtripDetector(random_state=0).fit(rng.normal(size=(2000, features)))
    assert (detector.predict(rng.normal(size=(4000, features))) == -1).mean() < 0.015


def test_p_values_of_clean_rows_are_uniform(rng):
    p_values = []
    for repeat in range(40):
        detector = RoundtripDetector(random_state=repeat).fit(rng.normal(size=(150, 2)) ** 3)
        p_values.append(detector.p_value(rng.normal(size=(1, 2)) ** 3)[0])
    assert kstest(p_values, "uniform").pvalue > 0.01


def test_too_few_held_out_rows_for_discoveries_are_said(of_ring, rng):
    with pytest.warns(UserWarning, match="300 reference rows are too few"):
        assert not of_ring.discoveries(ring(rng, 1000), rate=0.1).any()


def test_draws_are_no_reference_for_every_kind_of_oddity(of_ring):
    with pytest.raises(ValueError, match="held-out"):
        of_ring.p_value(np.zeros((1, 2)), reference="model")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e30, 1e308, -1.7e308])
def test_the_largest_numbers_are_odd(of_ring, value):
    row = [[value, 0.0]]
    assert np.isfinite(of_ring.score_samples(row)).all()
    assert of_ring.predict(row) == -1
    assert of_ring.explain(row).named(1) == [["x0"]]


def test_units_do_not_matter(rng):
    X = dependent(rng, 300)
    first = RoundtripDetector(random_state=0).fit(X).score_samples(X)
    scaled = X * 10.0 ** np.arange(-4, 4) + 7
    second = RoundtripDetector(random_state=0).fit(scaled).score_samples(scaled)
    np.testing.assert_allclose(second, first, rtol=0.01, atol=0.05)


def test_saved_and_loaded_it_is_the_same(of_dependent, rng, tmp_path):
    X = pd.DataFrame(dependent(rng, 20), columns=NAMES)
    of_dependent.save(tmp_path / "detector.rt")
    again = load(tmp_path / "detector.rt")
    np.testing.assert_array_equal(again.score_samples(X), of_dependent.score_samples(X))
    np.testing.assert_array_equal(again.predict(X), of_dependent.predict(X))
    pd.testing.assert_frame_equal(again.explain(X).to_frame(), of_dependent.explain(X).to_frame())
    assert again.n_features_in_ == 8


def test_constant_columns_and_few_rows(rng):
    X = np.column_stack([rng.normal(size=(300, 2)), np.full(300, 7.0)])
    detector = RoundtripDetector(random_state=0).fit(X)
    assert detector.predict([[0.0, 0.0, 7.0], [0.0, 0.0, 7.5]]).tolist() == [1, -1]
    for rows in (4, 5, 10):
        few = RoundtripDetector(random_state=0)
        assert (few.fit_predict(rng.normal(size=(rows, 2))) == 1).mean() >= 0.5


def test_gaussians_agree_with_the_closed_form(rng):
    mixing = rng.normal(size=(3, 3))
    covariance = mixing @ mixing.T + np.eye(3)
    one = Gaussians(np.zeros(1), np.zeros((1, 3)), np.linalg.inv(covariance)[None])
    x = rng.normal(size=(4, 3))
    others = np.array([1, 2])
    slope = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, 0])
    mean, variance = x[:, others] @ slope, covariance[0, 0] - slope @ covariance[others, 0]
    expected = 0.5 * np.log(2 * np.pi * variance) + 0.5 * (x[:, 0] - mean) ** 2 / variance
    np.testing.assert_allclose(one.given_others(x)[:, 0], expected)
    low, high = one.ranges(x, 0.9)
    np.testing.assert_allclose(low[:, 0], mean - 1.6449 * np.sqrt(variance), atol=1e-3)
    np.testing.assert_allclose(high[:, 0], mean + 1.6449 * np.sqrt(variance), atol=1e-3)


def test_a_given_row_is_not_its_own_neighbour(rng):
    rows = rng.normal(size=(50, 2))
    alone = Neighbours(np.delete(rows, 7, axis=0)).log_distances(rows[[7]])
    np.testing.assert_allclose(Neighbours(rows).log_distances(rows[[7]]), alone)


def test_lengths_of_tails_are_logarithms_of_shares(rng):
    usual = rng.exponential(size=(20_000, 1))
    values = np.array([[0.5], [1.0], [3.0], [12.0]])
    np.testing.assert_allclose(Tails.fit(usual).lengths(values), values, rtol=0.15, atol=0.05)


def test_robust_columns_invert(rng):
    X = np.exp(rng.normal(size=(200, 3)))
    columns = RobustColumns.fit(X)
    np.testing.assert_allclose(columns.invert(columns.apply(X * 50)), X * 50)
