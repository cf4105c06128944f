"""Rows with missing cells under models that were fitted to complete rows, or miss other cells."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from roundtrip import Isotropic, Roundtrip, RoundtripClassifier, RoundtripDetector
from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder

COVARIANCE = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 1.0]])


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    """Densities are right however well the encoder of parts of rows is trained."""
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=60))


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).multivariate_normal(np.zeros(3), COVARIANCE, size=3_000)


@pytest.fixture(scope="module")
def est(rows):
    return Roundtrip(latent_dim=3, noise=Isotropic(), max_epochs=20, random_state=0).fit(rows)


def with_holes(rows, seed=1):
    rng = np.random.default_rng(seed)
    mask = rng.random(rows.shape) < 0.4
    mask[np.arange(len(mask)), rng.integers(3, size=len(mask))] = False
    return np.where(mask, np.nan, rows)


def test_the_density_of_observed_cells_is_the_marginal_density(est, rows):
    x = with_holes(rows[:60])
    result = est.density(x)
    assert result.converged.mean() > 0.95
    truth = np.empty(len(x))
    for place, row in enumerate(x):
        seen = ~np.isnan(row)
        law = multivariate_normal(np.zeros(seen.sum()), COVARIANCE[np.ix_(seen, seen)])
        truth[place] = law.logpdf(row[seen])
    assert np.abs(result.log_density - truth).mean() < 0.15  # of a fit of 3,000 rows


def test_joint_density_is_the_integral_over_a_column(est, rows):
    x = rows[:1].copy()
    grid = np.linspace(-5, 5, 101)
    table = np.repeat(x, len(grid), axis=0)
    table[:, 1] = grid
    whole = np.exp(est.density(table, tol=0.03).log_density).sum() * (grid[1] - grid[0])
    x[0, 1] = np.nan
    part = np.exp(est.density(x, tol=0.02).log_density[0])
    np.testing.assert_allclose(part, whole, rtol=0.1)


def test_complete_rows_beside_parts_of_rows_have_their_own_density(est, rows):
    complete = rows[:6]
    x = np.concatenate([complete, with_holes(rows[6:9])])
    np.testing.assert_array_equal(est.score_samples(x)[:6], est.score_samples(complete))
    np.testing.assert_allclose(est.score_samples(x)[7:8], est.score_samples(x[7:8]), rtol=1e-12)


def test_means_codes_and_classes_of_parts_of_rows_are_finite(est, rows):
    x = with_holes(rows[:20])
    assert np.isfinite(est.score(x))
    assert np.isfinite(est.transform(x)).all()
    y = (rows[:300, 0] > 0).astype(int)
    density = Roundtrip(max_epochs=3, random_state=0)
    classifier = RoundtripClassifier(estimator=density).fit(rows[:300], y)
    first_known = np.array([[2.0, np.nan, np.nan], [-2.0, np.nan, np.nan]])
    assert classifier.predict(first_known).tolist() == [1, 0]


def test_other_methods_and_training_refuse_parts_of_rows(est, rows):
    x = with_holes(rows[:20])
    with pytest.raises(ValueError, match="complete rows"):
        est.density(x, method="laplace")
    with pytest.raises(ValueError, match="validation_data has missing cells"):
        Roundtrip(max_epochs=1).fit(rows[:50], validation_data=x)
    with pytest.raises(ValueError, match="missing cells"):
        RoundtripDetector.from_density(est).predict(x)
    again = Roundtrip(max_epochs=1, latent_dim=1, warm_start=True).fit(rows[:50])
    with pytest.raises(ValueError, match="missing cells"):
        again.fit(x)


def test_cells_that_were_never_missing_in_fit_may_be_missing_in_scoring(rows):
    table = pd.DataFrame(rows[:800], columns=["a", "b", "c"])
    table.loc[::5, "a"] = np.nan
    est = Roundtrip(max_epochs=5, random_state=0).fit(table)
    x = pd.DataFrame({"a": [np.nan, 0.3], "b": [0.2, np.nan], "c": [0.1, 0.1]})
    result = est.density(x)
    assert result.converged.all()


def pairs(count, seed):
    """Two pairs of nearly equal columns."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, count))
    noise = 0.01 * rng.normal(size=(2, count))
    return np.column_stack([a, a + noise[0], b, b + noise[1]])


def test_usual_rows_are_no_outliers_because_a_cell_is_missing():
    table = pairs(1_500, 0)
    table[np.random.default_rng(1).random(1_500) < 0.05, 1] = np.nan
    density = Roundtrip(max_epochs=12, latent_dim=2, random_state=0)
    detector = RoundtripDetector(estimator=density, random_state=0).fit(table)
    x = pairs(400, 2)
    x[:, 1] = np.nan
    assert (detector.p_value(x) < 0.05).mean() < 0.12
    assert (detector.predict(x) == -1).mean() < 0.1
    explained = detector.explain(x[:2])
    assert np.isnan(explained.given_others[:, 1]).all()
    assert all("x1" not in names for names in explained.named(2))


def test_explanations_name_indicators_of_missing_cells():
    table = pairs(300, 0)
    table[::4, 1] = np.nan
    est = Roundtrip(missing="model", max_epochs=2, random_state=0).fit(table)
    explained = RoundtripDetector.from_density(est).explain(table[:2])
    assert explained.features[-1] == "x1 (missing)"
    assert explained.given_others.shape == (2, 5)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_incomplete_columns_raise_no_warning_of_overfitting(unit):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(1_500, 2)) * [1, unit]
    table[rng.random(1_500) < 0.7, 1] = np.nan
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        Roundtrip(random_state=0, latent_dim=2).fit(table, max_time=4)
    assert not any("more likely" in str(each.message) for each in found)
