import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp, kstest, spearmanr
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from roundtrip import Likelihood, Residual, Roundtrip, RoundtripDetector, load
from roundtrip.model.prior import StandardNormal
from roundtrip.outliers.blurred import BlurredDensity
from roundtrip.outliers.default_density import default_density


def brief(features=2):
    """The default density, hardly trained: for what does not depend on its quality."""
    return default_density(features).set_params(max_epochs=1, objective__min_steps_per_epoch=10)


def barely(**settings):
    """A density with the noise and networks of the default estimator, hardly trained."""
    brief = {"objective": Likelihood(min_steps_per_epoch=20), "max_epochs": 2}
    return Roundtrip(**brief | settings)


def short(features):
    """The default density after a third of its training."""
    return default_density(features).set_params(max_epochs=2)


def bent(rng, rows):
    """Two features that depend on each other, and a third, skewed, that does not."""
    angle = rng.uniform(0, np.pi, rows)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(rows, 2))
    return np.column_stack([circle, np.exp(rng.normal(size=rows))])


@pytest.fixture
def few_draws(monkeypatch):
    """For detectors that score under narrow noise, which takes time."""
    monkeypatch.setattr("roundtrip.outliers.scorer.DRAWS", 30)


@pytest.fixture(scope="module")
def fitted():
    return RoundtripDetector(estimator=short(3), random_state=0).fit(
        bent(np.random.default_rng(1), 4000)
    )


@parametrize_with_checks([RoundtripDetector(estimator=brief(1), random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RoundtripDetector(random_state=0)])
def test_scikit_learn_checks_of_the_default(estimator, check):
    check(estimator)


def test_finds_what_is_out_of_range(fitted, rng):
    odd = np.array([[0.0, 3.0, 1.0], [9.0, 9.0, 1.0], [0.0, 1.0, 1e4]])
    assert (fitted.predict(odd) == -1).all()
    assert (fitted.predict(bent(rng, 1000)) == 1).mean() > 0.95


def test_ranking_survives_a_cluster_of_outliers_in_the_training_rows(rng):
    clean, cluster = rng.normal(size=(2000, 4)), rng.normal(size=(100, 4)) * 0.05 + 5.0
    X = np.concatenate([clean, cluster])
    new = np.concatenate([rng.normal(size=(500, 4)), rng.normal(size=(25, 4)) * 0.05 + 5.0])
    outlier = np.repeat([0, 1], [500, 25])
    detector = RoundtripDetector(estimator=short(4), random_state=0).fit(X)
    assert roc_auc_score(outlier, -detector.score_samples(new)) > 0.99
    assert 60 <= detector.n_trimmed_ <= 130  # 80 of the cluster are among the training rows


def test_units_and_monotone_maps_of_columns_do_not_matter(rng):
    X = bent(rng, 600)
    mapped = np.column_stack([X[:, 0] * 1e6, X[:, 1] - 40, np.log(X[:, 2])])
    first, second = (
        RoundtripDetector(estimator=brief(3), random_state=0).fit(table) for table in (X, mapped)
    )
    inner = (np.abs(X[:, 2]) > 0.2) & (np.abs(X[:, 2]) < 5)  # the tails are straight lines
    scores = first.score_samples(X)[inner], second.score_samples(mapped)[inner]
    assert spearmanr(*scores).statistic > 0.99
    affine = RoundtripDetector(estimator=brief(3), random_state=0).fit(X * [1e6, 1.0, 0.5] + 3)
    np.testing.assert_allclose(
        affine.score_samples(X * [1e6, 1.0, 0.5] + 3), first.score_samples(X), atol=1e-3
    )


def test_p_values_of_clean_rows_are_uniform(fitted, rng):
    rows = bent(rng, 1000)
    p_values = fitted.p_value(rows)
    # The held-out rows are a sample, too: with these scores, two samples of one distribution.
    assert ks_2samp(fitted.score_samples(rows), fitted.held_out_scores_).pvalue > 0.01
    assert kstest(p_values[:50], "uniform").pvalue > 0.01
    assert 0 < p_values.min() <= p_values.max() <= 1
    # The density's own draws are as good as the fit: roughly uniform.
    assert kstest(fitted.p_value(rows, reference="model"), "uniform").statistic < 0.15


@pytest.mark.parametrize(
    ("outliers", "references"), [(0, ["held-out", "trimmed"]), (80, ["trimmed"])]
)
def test_false_discovery_rate_is_kept_over_repeats(outliers, references, rng, few_draws):
    """With training rows that are clean, and with the tenth of outliers that the batch has."""
    wrong, found = [], []
    for repeat in range(20):
        odd = rng.normal(size=(outliers, 2)) + 6
        detector = RoundtripDetector(estimator=brief(2), random_state=repeat)
        detector.fit(np.concatenate([rng.normal(size=(800 - outliers, 2)), odd]))
        batch = np.concatenate([rng.normal(size=(180, 2)), rng.normal(size=(20, 2)) + 6])
        named = [detector.discoveries(batch, rate=0.2, reference=each) for each in references]
        wrong.append([each[:180].sum() / max(1, each.sum()) for each in named])
        found.append([each[180:].mean() for each in named])
    assert (np.mean(wrong, axis=0) <= 0.2).all()
    assert (np.mean(found, axis=0) > 0.8).all()


def test_of_clean_rows_hardly_any_is_discovered(rng):
    """With many held-out rows p-values can be small enough for single discoveries."""
    detector = RoundtripDetector(estimator=short(1), random_state=0)
    detector.fit(rng.normal(size=(10_000, 1)))
    for reference in ("held-out", "trimmed"):
        p_values = detector.p_value(rng.normal(size=(10_000, 1)), reference=reference)
        assert (p_values < 0.01).mean() < 0.015
        discoveries = [
            detector.discoveries(rng.normal(size=(150, 1)), reference=reference).any()
            for _ in range(20)
        ]
        assert np.mean(discoveries) <= 0.3  # 0.1 is asked for, of one and the same reference


def test_explanation_names_the_corrupted_feature(rng):
    mixing = rng.normal(size=(3, 10))

    def rows(count):
        return rng.normal(size=(count, 3)) @ mixing + 0.5 * rng.normal(size=(count, 10))

    detector = RoundtripDetector(estimator=short(10), random_state=0).fit(rows(4000))
    odd = pd.DataFrame(rows(100), columns=[f"f{j}" for j in range(10)], index=range(100, 200))
    planted = rng.integers(10, size=100)
    spread = rows(1000).std(axis=0)
    signs = rng.choice([-1, 1], size=100)
    for place, feature in enumerate(planted):
        odd.iloc[place, feature] += 5 * signs[place] * spread[feature]
    with pytest.warns(UserWarning, match="feature names"):
        explanation = detector.explain(odd)
    first = np.array([int(names[0].removeprefix("x")) for names in explanation.named(1)])
    assert (first == planted).mean() >= 0.9
    frame = explanation.to_frame()
    assert list(frame.index) == list(range(100, 200))
    assert (frame["surprise"] > 0).mean() > 0.9
    assert (frame["nats_1"] >= frame["nats_2"]).all()


def test_contamination_sets_the_share_of_training_rows_that_are_outliers(rng):
    X = rng.normal(size=(500, 2))
    detector = RoundtripDetector(0.1, estimator=brief(), random_state=0).fit(X)
    assert (detector.predict(X) == -1).sum() == 50
    np.testing.assert_array_equal(detector.fit_predict(X), detector.predict(X))
    assert (detector.decision_function(X) == detector.score_samples(X) - detector.offset_).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"contamination": 0.7}, "contamination"),
        ({"contamination": 0}, "contamination"),
        ({"trim": -1}, "trim"),
        ({"calibration_fraction": 1.5}, "calibration_fraction"),
        ({"gaussian_columns": "yes"}, "gaussian_columns"),
    ],
)
def test_wrong_parameters_are_named(settings, message, rng):
    with pytest.raises(ValueError, match=message):
        RoundtripDetector(**settings).fit(rng.normal(size=(50, 2)))
    detector = RoundtripDetector(estimator=brief()).fit(rng.normal(size=(50, 2)))
    with pytest.raises(ValueError, match="rate"):
        detector.discoveries([[0.0, 0.0]], rate=2)
    with pytest.raises(ValueError, match="reference"):
        detector.p_value([[0.0, 0.0]], reference="else")


def test_saved_and_loaded_it_is_the_same(rng, tmp_path):
    X = pd.DataFrame(bent(rng, 300), columns=["a", "b", "c"])
    detector = RoundtripDetector(0.1, estimator=brief(3), random_state=0).fit(X)
    detector.save(tmp_path / "detector.rt")
    again = load(tmp_path / "detector.rt")
    np.testing.assert_array_equal(again.score_samples(X), detector.score_samples(X))
    np.testing.assert_array_equal(again.p_value(X), detector.p_value(X))
    np.testing.assert_array_equal(again.predict(X), detector.predict(X))
    pd.testing.assert_frame_equal(
        again.explain(X[:2]).to_frame(), detector.explain(X[:2]).to_frame()
    )
    assert again.estimator.get_params() == detector.estimator.get_params()
    detector.set_params(sigma=0.5).save(tmp_path / "detector.rt")  # for the next fit
    changed = load(tmp_path / "detector.rt")
    np.testing.assert_array_equal(changed.score_samples(X), detector.score_samples(X))


@pytest.mark.parametrize(
    "settings",
    [
        {"estimator": brief().set_params(prior="mixture", scale="standard")},
        {"estimator": barely(max_epochs=1, tol=0.2)},
        {"estimator": brief(), "gaussian_columns": False, "sigma": 1.0, "trim": False},
        {"estimator": brief(), "sigma": None},
    ],
    ids=["prior of its own", "noise of its own", "plain columns", "no wide noise"],
)
def test_detectors_of_all_kinds_are_saved(settings, rng, tmp_path, few_draws):
    X = rng.normal(size=(120, 2))
    detector = RoundtripDetector(random_state=0, **settings).fit(X)
    detector.save(tmp_path / "detector.rt")
    again = load(tmp_path / "detector.rt")
    np.testing.assert_array_equal(again.score_samples(X[:9]), detector.score_samples(X[:9]))
    np.testing.assert_array_equal(
        again.p_value(X[:9], reference="model"), detector.p_value(X[:9], reference="model")
    )
    pd.testing.assert_frame_equal(
        again.explain(X[:2]).to_frame(), detector.explain(X[:2]).to_frame()
    )
    assert {**again.get_params(), "estimator": None} == {**detector.get_params(), "estimator": None}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e30, 1e308, -1.7e308])
def test_the_largest_numbers_are_the_oddest(fitted, value):
    row = [[value, 1.0, 1.0]]
    assert np.isfinite(fitted.score_samples(row)).all()
    assert fitted.predict(row) == -1
    assert fitted.p_value(row) == 1 / (1 + len(fitted.held_out_scores_))
    assert fitted.explain(row).named(1) == [["x0"]]


@pytest.mark.parametrize("constant", [0.0, 7.0, -1000.0, 1e-9])
def test_any_other_value_in_a_column_that_was_constant_is_odd(constant, rng):
    X = np.column_stack([rng.normal(size=(300, 2)), np.full(300, constant)])
    detector = RoundtripDetector(estimator=brief(3), random_state=0).fit(X)
    size = abs(constant) or 1.0
    usual, other, far = np.array([0, 0, constant]) + size * np.outer([0, 0.01, 9], [0, 0, 1])
    assert detector.predict([usual, other, far]).tolist() == [1, -1, -1]
    assert detector.p_value([usual])[0] > 0.5
    assert detector.explain([other]).named(1) == [["x2"]]


def test_infinite_values_are_named():
    frame = pd.DataFrame({"a": [1.0] * 5, "gap": [1.0, None, np.inf, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"in columns gap; first in row 2"):
        RoundtripDetector().fit(frame)


def test_a_file_holds_the_centres_that_rows_are_scored_by(rng, tmp_path, monkeypatch):
    """Held-out scores are of these; other codes, as of another release, would not go with them."""
    X = rng.normal(size=(100, 2))
    detector = RoundtripDetector(estimator=brief(), random_state=0).fit(X)
    detector.save(tmp_path / "detector.rt")
    other = StandardNormal.spread
    monkeypatch.setattr(
        StandardNormal, "spread", lambda self, count, seed: other(self, count, seed + 1)
    )
    assert not np.array_equal(  # the patch is where codes come from
        BlurredDensity.of(detector.estimator_.fitted_, 4.0).centres, detector.blurred_.centres
    )
    again = load(tmp_path / "detector.rt")
    np.testing.assert_array_equal(again.score_samples(X), detector.score_samples(X))


def test_of_rows_that_are_alike_none_is_odd_on_another_processor_either(rng):
    """Equal rows tie, also if their scores are of another machine and differ in the last digits."""
    X = rng.integers(2, size=(1000, 2)).astype(float)
    detector = RoundtripDetector(estimator=brief(), random_state=0).fit(X)
    new = rng.integers(2, size=(500, 2)).astype(float)
    p_values = detector.p_value(new)
    for level in (
        0.05,
        0.2,
        0.5,
    ):  # a tie that counts for nothing makes a quarter of the rows odder
        assert (p_values <= level).mean() < level + 0.1
    for difference in (1e-9, -1e-9):
        detector.held_out_scores_ = detector.held_out_scores_ + difference
        np.testing.assert_array_equal(detector.p_value(new), p_values)


def test_usual_rows_have_no_surprise_to_explain(fitted):
    """Explanations are relative to rows of the density, in its own units."""
    explanation = fitted.explain(bent(np.random.default_rng(5), 1000))
    assert abs(np.median(explanation.surprise)) < 0.03
    assert np.abs(np.median(explanation.given_others, axis=0)).max() < 0.02


def test_a_detector_of_a_density_does_not_follow_its_next_fit(rng, few_draws):
    X = rng.normal(size=(200, 2))
    density = barely(max_epochs=2, tol=0.2, random_state=0).fit(X)
    detector = RoundtripDetector.from_density(density)
    before = detector.score_samples(X[:5])
    density.fit(X + 50)
    np.testing.assert_array_equal(detector.score_samples(X[:5]), before)


def test_ctrl_c_keeps_what_was_trained_and_goes_no_further(rng, monkeypatch):
    fits, fit = [], Roundtrip.fit

    def interrupted(self, X, **others):
        fits.append(len(X))
        fit(self, X, **others)
        self.stopped_by_ = "interrupt"
        return self

    monkeypatch.setattr(Roundtrip, "fit", interrupted)
    X = rng.normal(size=(200, 2))
    X[:10] += 20
    detector = RoundtripDetector(estimator=brief(), random_state=0).fit(X)
    assert fits == [160]
    assert detector.n_trimmed_ == 0
    # Not the map of the first round, which trusts the inner 70 % of the rows only.
    low, high = detector.gaussian_columns_.values[0, [0, -1]]
    assert ((low <= X[:, 0]) & (X[:, 0] <= high)).mean() > 0.9
    assert detector.predict([[0.0, 0.0], [30.0, 30.0]]).tolist() == [1, -1]


def test_explanations_of_a_density_on_large_columns(rng, few_draws):
    """Columns in other units than 1 and without wide noise: by the certified engine."""
    t = rng.normal(size=1500)
    X = np.column_stack([1e6 * t, 1e-3 * t, rng.normal(size=1500)])
    X += rng.normal(size=X.shape) * [1e5, 1e-4, 0.0]
    density = Roundtrip(
        latent_dim=2,
        noise="diagonal",
        network=Residual(64, 2),
        max_epochs=6,
        tol=0.1,
        random_state=0,
    ).fit(X)
    detector = RoundtripDetector.from_density(density)
    explanation = detector.explain([[-1e6, 1e-3, 0.0], [0.0, 0.0, 6.0]])
    assert set(explanation.named(2)[0]) == {"x0", "x1"}
    assert explanation.named(1)[1] == ["x2"]
    assert (explanation.surprise > 2).all()


def test_a_fitted_density_is_a_detector(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("roundtrip.outliers.scorer.DRAWS", 150)
    X = rng.normal(size=(400, 2))
    density = barely(max_epochs=6, random_state=0).fit(X)
    density.save(tmp_path / "density.rt")
    detector = RoundtripDetector.from_density(load(tmp_path / "density.rt"))
    np.testing.assert_allclose(detector.score_samples(X[:50]), density.score_samples(X[:50]))
    assert detector.p_value([[0.0, 0.0]]) > 0.3 > 0.01 > detector.p_value([[9.0, 9.0]])
    with pytest.raises(ValueError, match="held-out"):
        detector.p_value(X, reference="held-out")
    with pytest.raises(ValueError, match="context"):
        RoundtripDetector.from_density(barely(max_epochs=1).fit(X, context=X[:, 0] > 0))


def test_scores_are_those_of_the_fitted_generator_with_wide_noise(rng):
    """The mixture of many codes agrees with the certified estimate under the same noise."""
    X = rng.normal(size=(400, 2))
    detector = RoundtripDetector(
        estimator=brief(2), sigma=2.0, gaussian_columns=False, trim=False, random_state=0
    ).fit(X)
    result = detector.estimator_.density(X[:20], sigma=detector.blurred_.sigma, tol=0.02)
    np.testing.assert_allclose(detector.score_samples(X[:20]), result.log_density, atol=0.06)


def test_parts_of_an_explanation_add_up(fitted, rng):
    rows = bent(rng, 20)
    surprises = fitted.scorer_.surprises(rows)
    np.testing.assert_allclose(surprises.total, -fitted.score_samples(rows), atol=1e-9)
    np.testing.assert_allclose(
        surprises.total, surprises.residual.sum(axis=1) + surprises.latent, atol=1e-9
    )
    assert (surprises.latent > 0).all()


def test_off_the_manifold_and_far_along_it_are_told_apart(rng):
    """Two features that are equal but for noise: moved apart, or both far out."""
    t = rng.normal(size=3000)
    X = np.column_stack([t, t]) + 0.1 * rng.normal(size=(3000, 2))
    detector = RoundtripDetector(estimator=short(2), random_state=0).fit(X)
    frame = detector.explain([[1.5, -1.5], [3.0, 3.0]]).to_frame()
    off, along = frame["off_manifold"], frame["rare_code"]
    assert off[0] / (off[0] + along[0]) > off[1] / (off[1] + along[1])


def test_a_density_of_any_noise_scores_by_itself(rng, few_draws):
    X = rng.normal(size=(200, 2))
    density = barely(max_epochs=1)
    with pytest.raises(ValueError, match="isotropic"):
        RoundtripDetector(estimator=density, sigma=2.0).fit(X)
    assert RoundtripDetector(estimator=density, trim=False).fit(X[:50]).blurred_ is None
    with pytest.raises(ValueError, match="Roundtrip"):
        RoundtripDetector(estimator=3).fit(X)
    detector = RoundtripDetector(estimator=density, sigma=None, trim=False, random_state=0).fit(X)
    assert detector.p_value([[9.0, 9.0]])[0] < 0.05


@pytest.mark.parametrize(
    ("scale", "gaussian_columns", "wide"),
    [
        (None, True, True),
        (None, False, False),
        ("standard", False, True),
        ("minmax", True, False),
    ],
)
def test_wide_noise_is_for_columns_of_its_unit(scale, gaussian_columns, wide, rng, few_draws):
    detector = RoundtripDetector(
        estimator=brief(2).set_params(scale=scale),
        gaussian_columns=gaussian_columns,
        trim=False,
        random_state=0,
    )
    detector.fit(100 * rng.normal(size=(40, 2)))
    assert (detector.blurred_ is not None) == wide


def test_a_failed_fit_leaves_the_detector_as_it_was(fitted, rng, monkeypatch):
    """Whether the rows are refused or the density fails after the first trimming."""
    before = fitted.score_samples([[0.0, 1.0, 1.0]])
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(np.full((10, 3), np.nan))
    monkeypatch.setattr("roundtrip.outliers.detector.default_density", brief)
    fits, fit = [], Roundtrip.fit

    def fails_later(self, X, **others):
        fits.append(len(X))
        if len(fits) == 2:
            raise MemoryError
        return fit(self, X, **others)

    monkeypatch.setattr(Roundtrip, "fit", fails_later)
    named = pd.DataFrame(100 * rng.normal(size=(200, 2)), columns=["a", "b"])
    with pytest.raises(MemoryError):
        fitted.fit(named)
    np.testing.assert_array_equal(fitted.score_samples([[0.0, 1.0, 1.0]]), before)
    assert fitted.n_features_in_ == 3
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize("rows", [5, 10])
def test_few_rows_and_rows_that_are_mostly_alike_are_not_called_outliers(rng, rows):
    detector = RoundtripDetector(estimator=brief(2), random_state=0)
    X = rng.normal(size=(rows, 2))
    assert (detector.fit_predict(X) == 1).mean() >= 0.8
    zeros = np.where(rng.random(500) < 0.9, 0.0, rng.normal(size=500))[:, None]
    detector = RoundtripDetector(estimator=brief(1), random_state=0)
    assert (detector.fit_predict(zeros) == 1).mean() > 0.93


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
def test_a_density_of_dates_finds_outliers(rng, few_draws):
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.normal(0, 30, size=300), "D")
    frame = pd.DataFrame({"x": rng.normal(size=300), "day": days})
    density = barely(random_state=0).fit(frame)
    detector = RoundtripDetector.from_density(density)
    few = frame[:5].assign(day=[*days[:4], pd.Timestamp("2034-01-01")])
    scores = detector.score_samples(few)
    np.testing.assert_allclose(scores, density.score_samples(few))
    assert scores.argmin() == 4
    assert detector.explain(few).named(1)[4] == ["day"]
