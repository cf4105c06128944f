"""The benchmarks of parts of rows, of any conditionals and of prediction."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fitted_oracles import GaussianTable
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import any_conditional
import parts_of_rows
import prediction
from any_conditional import GAUSSIAN, MIXTURE, ExactConditional
from parts_of_rows import by_the_chain, half_observed
from prediction_methods import METHODS, NGBOOST, ROUNDTRIP, Normal, Steps

from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=60))


def test_half_observed_rows_have_a_hidden_and_a_known_cell():
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(4000, 3)))
    missing = half_observed(rows, 0).isna()
    assert set(missing.sum(axis=1)) == {1, 2}
    assert missing.to_numpy().mean() == pytest.approx(0.5, abs=0.02)


def test_the_chain_of_conditionals_is_the_density_of_the_hidden_cells():
    oracle = GaussianTable(2, 4)
    rows = oracle.table(12)
    parts = half_observed(rows, 0)
    found, error, converged = by_the_chain(oracle.est, rows, parts)
    truth = oracle.log_density(rows.to_numpy()) - oracle.log_density(parts.to_numpy())
    assert converged.all()
    assert (np.abs(found - truth) < 4.5 * error).all()
    assert error.max() < 0.2


@pytest.mark.parametrize("groups", [False, True])
def test_conditionals_of_mixtures_are_exact(groups):
    oracle = GaussianTable(2, 4, groups=groups)
    model = ExactConditional()
    model.weights, model.means = np.log(oracle.shares), oracle.means
    model.covariances = oracle.covariances
    rows = oracle.table(40).to_numpy()
    parts = half_observed(pd.DataFrame(rows), 0).to_numpy()
    log_p, filled = model.conditionals(rows, parts)
    np.testing.assert_allclose(log_p, oracle.log_density(rows) - oracle.log_density(parts))
    hidden = np.isnan(parts)
    assert (filled[~hidden] == parts[~hidden]).all()
    for row, place in zip(*hidden.nonzero(), strict=True):
        cells = zip(oracle.names, parts[row], strict=True)
        values = {name: cell for name, cell in cells if not np.isnan(cell)}
        law = oracle.given(oracle.names[place], values)
        assert filled[row, place] == pytest.approx(law.mean)


def test_mixtures_are_in_the_units_of_the_rows():
    X = 3 + 2 * GaussianTable(2, 4).table(2_000).to_numpy()
    model = ExactConditional(n_components=1, random_state=0).fit(X)
    np.testing.assert_allclose(model.means[0], X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(model.covariances[0], np.cov(X.T), atol=0.4)


@pytest.fixture
def steps():
    rng = np.random.default_rng(0)
    edges = np.sort(rng.normal(size=(3, 6)), axis=1)
    return Steps(edges, rng.dirichlet(np.ones(7), size=3))


def test_steps_are_densities_with_their_cdf_and_mean(steps):
    axis = np.linspace(-40, 40, 200_001)
    for row in range(3):
        one = Steps(
            *(np.repeat(each[[row]], len(axis), axis=0) for each in (steps.edges, steps.masses))
        )
        density = np.exp(one.log_prob(axis))
        assert np.trapezoid(density, axis) == pytest.approx(1, abs=1e-3)
        assert np.trapezoid(density * axis, axis) == pytest.approx(one.mean()[0], abs=3e-3)
        cumulative = np.cumsum(density) * (axis[1] - axis[0])
        np.testing.assert_allclose(cumulative[::1000], one.cdf(axis)[::1000], atol=2e-3)


def test_calibration_of_numbers_is_zero_for_the_true_distribution():
    rng = np.random.default_rng(0)
    loc = rng.normal(size=20_000)
    y = loc + 2 * rng.normal(size=len(loc))
    right = prediction.of_numbers(Normal(loc, np.full(len(loc), 2.0)), y)
    assert right["calibration"] < 0.015
    assert right["coverage_90"] == pytest.approx(0.9, abs=0.01)
    assert right["log_score"] == pytest.approx(norm.logpdf(y, loc, 2).mean())
    narrow = prediction.of_numbers(Normal(loc, np.full(len(loc), 1.0)), y)
    assert narrow["calibration"] > 0.1
    assert narrow["coverage_90"] < 0.7


def test_calibration_of_levels():
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    y = np.where(rng.random(len(p)) < p, "yes", "no")
    right = prediction.of_levels(pd.DataFrame({"yes": p, "no": 1 - p}), y)
    assert right["calibration"] < 0.01
    assert right["log_score"] == pytest.approx(-0.5, abs=0.01)
    sharp = p**2 / (p**2 + (1 - p) ** 2)
    assert (
        prediction.of_levels(pd.DataFrame({"yes": sharp, "no": 1 - sharp}), y)["calibration"] > 0.05
    )


def made(rows=700):
    rng = np.random.default_rng(0)
    a = rng.normal(size=rows)
    frame = pd.DataFrame({"a": a, "b": rng.choice(["u", "v"], size=rows)})
    frame["y"] = a + np.where(frame["b"] == "u", 0, 3) + 0.3 * rng.normal(size=rows)
    frame["level"] = np.where(frame["y"] + 0.5 * rng.normal(size=rows) > 1, "high", "low")
    return frame[:-300], frame[-300:].reset_index(drop=True)


@pytest.mark.parametrize(
    ("kind", "method"),
    [(k, m) for k, known in METHODS.items() for m in known if m not in (NGBOOST, ROUNDTRIP)],
)
def test_models_of_one_column_predict_it(kind, method):
    train, test = made()
    target = {"number": "y", "category": "level"}[kind]
    found, _ = METHODS[kind][method](train, test, target, 0, None, None)
    y = test[target].to_numpy()
    if kind == "number":
        figures = prediction.of_numbers(found, y)
        assert figures["log_score"] > norm.logpdf(y, y.mean(), y.std()).mean() + 0.2
        assert figures["quality"] < 0.5
    else:
        figures = prediction.of_levels(found, y)
        assert figures["quality"] > 0.9
        assert figures["log_score"] > -0.4


def test_ngboost_is_left_out_without_its_environment():
    options = {"rows": 5, "methods": prediction.NAMES, "budget": 1.0}
    without = prediction.cases("CASP", 0, None, **options, ngboost=None)
    assert NGBOOST not in [case["method"] for case in without]
    assert len(prediction.cases("CASP", 0, None, **options, ngboost=Path("python"))) == 4
    assert [case["method"] for case in prediction.cases("Adult", 0, None, **options, ngboost=None)]


MACHINE = {"threads": 1, "cores": 2, "torch": "2.6"}


def test_page_of_parts_of_rows_states_its_bars():
    record = {
        **{"table": "CASP", "split": 0, "budget": 300.0, "rows": 1000, "features": 10, **MACHINE},
        **{"fit_seconds": 300.0, "scored_rows": 1000, "full_ms": 5.0, "half_ms": 12.0},
        **{"full_cpu_ms": 5.0, "half_cpu_ms": 12.0, "ratio": 2.4, "full_converged": 0.99},
        **{"half_converged": 0.97, "full_evaluations": 600.0, "half_evaluations": 1500.0},
        **{"chained_rows": 200, "chained_converged": 0.95, "gap": 0.001, "gap_error": 0.01},
        **{"typical_error": 0.08, "z_mean": 0.1, "z_std": 1.02, "far": 0, "farthest": 2.9},
    }
    text = parts_of_rows.page([{**record, "ratio": 7.77}, record])
    assert "at most 4 times the CPU time of full rows on 1 of 1" in text
    assert "98% of them converge on 0 of 1" in text
    assert "7.77" not in text


def test_page_of_any_conditionals_says_who_is_first():
    def record(method, log_density, nrmse):
        return {
            **{"table": "CASP", "method": method, "split": 0, "rows": 10, "budget": 9.0, **MACHINE},
            **{"train_rows": 99, "test_rows": 10, "features": 2, "std_error": 0.1},
            **{"log_density": log_density, "nrmse": nrmse, "rmse": [nrmse, nrmse]},
            **{"fit_seconds": 1.0, "conditional_seconds": 1.0},
        }

    records = [record(GAUSSIAN, -9.0, 0.9), record(MIXTURE, -5.0, 0.5)]
    assert "CASP, split 0: not complete." in any_conditional.page(records)
    text = any_conditional.page([*records, {**record(ROUNDTRIP, -3.0, 0.6), "converged": 1.0}])
    assert f"highest log density {ROUNDTRIP}, lowest NRMSE {MIXTURE}." in text


def test_page_of_prediction_states_the_bar():
    def record(method, score, **more):
        return {
            **{"table": "Adult", "method": method, "split": 0, "rows": 10, "target": "income"},
            **{"train_rows": 99, "test_rows": 10, "log_score": score, "std_error": 0.01},
            **{"calibration": 0.02, "quality": 0.9, "accuracy": 0.85, "seconds": 3.0},
            **MACHINE,
            **more,
        }

    own = record(ROUNDTRIP, -0.31, converged=1.0, typical_error=0.01)
    text = prediction.page([record("gradient boosting", -0.28), own])
    assert (
        "0.030 nats behind the best model for the column (gradient boosting), within 0.05" in text
    )
