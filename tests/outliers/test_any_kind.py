"""Outliers among rows with categories, ordered levels and missing cells."""

import numpy as np
import pandas as pd
import pytest
from mixed_oracles import MixedMixture, missing_at_random
from scipy.stats import ks_2samp

from roundtrip import Roundtrip, RoundtripDetector, load
from roundtrip.outliers.default_density import density_of_any_kind

ORACLE = MixedMixture()


@pytest.fixture(scope="module")
def detector():
    table = missing_at_random(ORACLE.table(2_000, seed=0), 0.1, seed=1)
    density = density_of_any_kind().set_params(max_epochs=8)
    return RoundtripDetector(estimator=density, random_state=0).fit(table)


def odd(rows):
    """Rows of small light people of whom one says huge, and one has many visits."""
    usual = pd.DataFrame({
        "height": [150.0] * 3, "weight": [48.0] * 3, "colour": ["green"] * 3,
        "size": pd.Categorical(["small", "huge", "small"], rows["size"].cat.categories, True),
        "visits": [1, 1, 25],
    })  # fmt: skip
    return usual


def test_impossible_combinations_score_lowest_and_are_explained(detector):
    rows = odd(ORACLE.table(3, seed=0))
    scores = detector.score_samples(rows)
    assert scores[0] > scores[1]
    assert scores[0] > scores[2]
    p = detector.p_value(rows)
    assert p[0] > 0.1
    assert p[2] < 0.02
    assert detector.predict(rows).tolist()[0] == 1
    named = detector.explain(rows).named(1)
    assert named[1] == ["size"]
    assert named[2] == ["visits"]


def test_usual_rows_score_like_the_held_out_ones(detector):
    rows = missing_at_random(ORACLE.table(1_500, seed=5), 0.1, seed=6)
    assert ks_2samp(detector.score_samples(rows), detector.held_out_scores_).pvalue > 0.001


def test_a_level_that_fit_has_not_seen_is_an_outlier_by_its_column(detector):
    rows = ORACLE.table(1, seed=7).assign(colour="violet")
    assert detector.explain(rows).named(1) == [["colour"]]
    assert detector.p_value(rows)[0] < 0.1


def test_scores_survive_a_file_and_do_not_depend_on_other_rows(detector, tmp_path):
    rows = missing_at_random(ORACLE.table(40, seed=8), 0.3, seed=9)
    scores = detector.score_samples(rows)
    detector.save(tmp_path / "detector.rt")
    np.testing.assert_array_equal(load(tmp_path / "detector.rt").score_samples(rows), scores)
    alone = [detector.score_samples(rows.iloc[[row]])[0] for row in range(5)]
    np.testing.assert_array_equal(scores[:5], alone)


def test_wide_noise_is_refused_for_categories():
    with pytest.raises(ValueError, match="complete numbers"):
        RoundtripDetector(sigma=2.0).fit(ORACLE.table(50, seed=0))


def test_the_user_can_say_what_columns_are():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"code": rng.integers(3, size=300), "x": rng.normal(size=300)})
    density = Roundtrip(max_epochs=2, latent_dim=1)
    detector = RoundtripDetector(estimator=density, columns={"code": "category"}, random_state=0)
    detector.fit(table)
    assert detector.estimator_.columns_["code"].kind == "category"
    assert np.isfinite(detector.score_samples(table)).all()


def test_nested_lists_are_read_as_by_the_density():
    rng = np.random.default_rng(0)
    rows = [[float(x), "a" if x > 0 else "b"] for x in rng.normal(size=120)]
    density = Roundtrip(max_epochs=1, latent_dim=1)
    detector = RoundtripDetector(estimator=density, random_state=0).fit(rows)
    assert [column.kind for column in detector.estimator_.columns_.values()] == [
        "number",
        "category",
    ]
    scores = detector.score_samples(rows)
    np.testing.assert_array_equal(detector.score_samples(np.array(rows, dtype=object)), scores)


def test_cells_of_incomplete_rows_are_explained_by_their_conditional_densities(detector):
    """-log p(x_j | the other observed cells), as `conditional` gives it."""
    rows = missing_at_random(ORACLE.table(4, seed=10), 0.5, seed=11)
    est = detector.estimator_
    found = detector.scorer_.surprises(detector._values(rows)).given_others
    np.testing.assert_array_equal(np.isnan(found), rows.isna().to_numpy())
    for place, name in enumerate(rows):
        known = rows[name].notna().to_numpy()
        p = est.conditional(rows, name).taken(known)
        log_p, error = p.log_prob(rows[name][known], with_error=True)
        expected = -log_p.to_numpy() - np.log(p.units.scale)
        bound = 4 * np.hypot(0.15, error)  # explanations have a tolerance of 0.1 for each of two
        assert (np.abs(found[known, place] - expected) < bound).all()
    frame = detector.explain(rows).to_frame()
    assert np.isfinite(frame[["surprise", "rare_code", "nats_1"]].to_numpy()).all()
