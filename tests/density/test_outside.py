"""Rows outside of the data: a term of p(x) that is known without an integral."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TINY
from scipy.stats import t as student_t

from roundtrip import Likelihood, Mixture, Residual, Roundtrip, RoundtripModel, load
from roundtrip.density.cells import quick_cell_surprises
from roundtrip.density.estimate import estimate
from roundtrip.density.mean import _estimates
from roundtrip.density.outside import CERTAIN, OUTSIDE_EVALUATIONS, with_outside
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.rough import rough_log_density
from roundtrip.density.sampling import FIRST_ROUND
from roundtrip.density.starts import most_start_evaluations, unusual_rows
from roundtrip.density.surprise import surprise_parts

SHARE = 0.3
"""Large, so that nobody can leave these rows out unnoticed."""


@pytest.fixture(scope="module")
def est():
    """A fit with one latent dimension, whose density quadrature gives, and many rows outside."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=600)
    table = pd.DataFrame({"a": z, "b": np.sin(2 * z) + 0.2 * rng.normal(size=600)})
    return Roundtrip(
        1,
        noise=Mixture(gaussians=2, boxes=4, outside_share=SHARE),
        network=Residual(16, 1),
        objective=Likelihood(batch_size=64),
        max_epochs=20,
        scale=None,
        prior="normal",
        random_state=0,
    ).fit(table)


def quadrature(model, x):
    """log p(x) of the model by a sum over z, and by the tails of the noise outside of the data."""
    z = torch.linspace(-9, 9, 20_001).double()[:, None]
    log_prior = model.prior.log_prob(z) + math.log(float(z[1] - z[0]))
    outputs = model.decode(z).double()
    with torch.no_grad():
        inside = torch.stack(
            [(model.noise.log_prob(outputs, row).sum(-1) + log_prior).logsumexp(0) for row in x]
        ).numpy()
    noise = model.noise
    centre, scale = noise.tail_centre[:, 0].numpy(), noise.tail_scale[:, 0].numpy()
    outside = student_t(2, centre, scale).logpdf(x.numpy()).sum(1)
    return np.logaddexp(math.log1p(-SHARE) + inside, math.log(SHARE) + outside), outside


@pytest.mark.parametrize("distance", [0.0, 1.0, 3.0, 10.0, 1e3, 1e8])
def test_densities_agree_with_quadrature_at_any_distance(est, distance):
    directions = np.random.default_rng(1).normal(size=(40, 2))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    x = est.sample(40, random_state=1, rounded=False).to_numpy() + distance * directions
    truth, _ = quadrature(est.model_, torch.from_numpy(x))
    result = estimate(est.model_, x, tol=0.02)
    assert result.converged.all()
    assert (np.abs(result.log_density - truth) < 4 * result.std_error + 1e-5).all()


def test_rows_far_outside_are_certain_and_cheap():
    """In all columns: the tails that G gives each cell by itself are much less likely."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(300, 6))
    est = Roundtrip(2, **TINY).fit(X)
    far = X[:5] + 50.0 * np.arange(1, 6)[:, None]
    results = [estimate(est.model_, far, random_state=seed) for seed in (0, 1)]
    outside = est.model_.log_outside(torch.from_numpy(far))
    for result in results:
        assert (result.n_evaluations == OUTSIDE_EVALUATIONS).all()
        assert (result.std_error == CERTAIN).all()
        np.testing.assert_allclose(result.log_density, outside, atol=1e-5)


def test_a_row_does_not_depend_on_rows_outside(est):
    near = est.sample(20, random_state=2).to_numpy()
    far = np.full((3, 2), 99.0)
    both = estimate(est.model_, np.concatenate([near, far]))
    np.testing.assert_allclose(both.log_density[:20], estimate(est.model_, near).log_density)
    np.testing.assert_allclose(both.log_density[20:], estimate(est.model_, far).log_density)


def test_models_without_such_rows_are_as_they_were(est, mixture):
    log_density, error = torch.tensor([-3.0, -99.0]), torch.tensor([0.1, 0.2])
    outside = torch.tensor([-30.0, -30.0])
    plain = Roundtrip(2, noise="diagonal", **TINY).fit(mixture.X)
    assert plain.model_.outside_share == 0
    assert with_outside(plain.model_, log_density, error, outside)[0] is log_density
    total, error, negligible = with_outside(est.model_, log_density, error, outside)
    assert negligible.tolist() == [False, True]
    assert error[0] == pytest.approx(0.1, abs=1e-6)
    assert error[1] == pytest.approx(CERTAIN)
    assert total[1] == -30


def test_the_mean_by_nets_contains_rows_outside(est):
    x = torch.from_numpy(est.sample(600, random_state=3).to_numpy())
    prepared = PreparedModel.precise(est.model_)
    x = x[~unusual_rows(prepared.model, x, prepared.bank(0))]
    truth, _ = quadrature(est.model_, x)
    each = np.stack([_estimates(prepared, x, seed)[0].numpy() for seed in range(8)])
    error = each.std(axis=0, ddof=1) / math.sqrt(len(each))
    gap = (each.mean(axis=0) - truth).mean()
    assert abs(gap) < 4 * math.sqrt((error**2).sum()) / len(x)
    assert len(x) > 300


def test_samples_contain_rows_outside(est):
    codes = est.model_.sample_codes(20_000, np.random.RandomState(0))
    outside = codes.isnan().any(dim=1)
    assert float(outside.double().mean()) == pytest.approx(SHARE, abs=5 * math.sqrt(SHARE / 20_000))
    outputs = est.model_.outputs_of(codes[outside])
    assert not outputs.isnan().any()
    drawn = est.model_.noise.sample(outputs, torch.Generator().manual_seed(0))
    scale = est.model_.noise.tail_scale[:, 0]
    level = student_t(2).cdf((drawn - est.model_.noise.tail_centre[:, 0]) / scale)
    assert abs(level.mean() - 0.5) < 4 / math.sqrt(12 * level.size)
    assert abs((level < 0.1).mean() - 0.1) < 4 * math.sqrt(0.09 / level.size)


def test_given_a_cell_far_outside_the_other_follows_its_tail(est):
    row = pd.DataFrame({"a": [500.0], "b": [np.nan]})
    p = est.conditional(row, "b")
    noise = est.model_.noise
    law = student_t(2, float(noise.tail_centre[1, 0]), float(noise.tail_scale[1, 0]))
    levels = [0.1, 0.5, 0.9]
    # Of the integral, G still has a tail of its own for each cell.
    np.testing.assert_allclose(law.cdf(p.quantile(levels).to_numpy()[0]), levels, atol=0.03)
    given = est.density(pd.DataFrame({"a": [500.0], "b": [0.3]}), given=["a"])
    np.testing.assert_allclose(given.log_density, law.logpdf(0.3), atol=0.05)
    event = est.probability({"b": (None, law.ppf(0.02))}, given={"a": 500.0})
    assert float(event) == pytest.approx(0.02, rel=0.1)
    assert event.converged.all()


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
def test_budgets_without_room_for_a_look_still_climb(est):
    """A row that the encoder does not know costs the look only where a climb is affordable, too."""
    far = np.array([[3.0, -6.0]])
    smallest = most_start_evaluations(est.model_, unusual=True) + FIRST_ROUND
    for spare in (0, OUTSIDE_EVALUATIONS - 1, OUTSIDE_EVALUATIONS):
        result = estimate(est.model_, far, max_evaluations=smallest + spare, tol=1.0)
        assert smallest <= result.n_evaluations[0] <= smallest + spare


def test_a_far_row_given_the_rest_is_imputed(est):
    row = pd.DataFrame({"a": [500.0], "b": [np.nan]})
    noise = est.model_.noise
    law = student_t(2, float(noise.tail_centre[1, 0]), float(noise.tail_scale[1, 0]))
    assert est.impute(row)["b"][0] == pytest.approx(law.median(), abs=0.3)


def test_cells_so_large_that_networks_overflow_say_nothing_of_others(est):
    row = pd.DataFrame({"a": [1e200], "b": [np.nan]})
    centre = float(est.model_.noise.tail_centre[1, 0])
    assert est.conditional(row, "b").quantile([0.5])[0.5][0] == pytest.approx(centre, abs=0.05)
    assert np.isfinite(est.impute(row)["b"][0])
    assert float(est.probability({"b": (None, centre)}, given={"a": 1e200})) == pytest.approx(0.5)


@pytest.mark.parametrize("distance", [0.0, 4.0, 100.0])
def test_other_estimates_contain_rows_outside(est, distance):
    x = est.sample(20, random_state=4).to_numpy() + distance
    truth, _ = quadrature(est.model_, torch.from_numpy(x))
    paper = estimate(est.model_, x, method="importance", n_samples=4000, scale=0.5)
    assert (np.abs(paper.log_density - truth) < 5 * paper.std_error + 1e-3)[paper.converged].all()
    rough = rough_log_density(est.model_, torch.from_numpy(x), draws=256, seed=0)
    quick, _ = quick_cell_surprises(est.model_, torch.from_numpy(x), seed=0)
    for each in (rough, quick.numpy()):
        assert np.median(np.abs(each - truth)) < 0.15
        assert (each > truth - 2).all()


def test_samples_lie_outside_as_often_as_they_should(est):
    noise = est.model_.noise
    law = student_t(2, noise.tail_centre[:, 0].numpy(), noise.tail_scale[:, 0].numpy())
    codes = est.model_.prior.sample(20_000, np.random.RandomState(1))
    inside = noise.sample(est.model_.decode(codes), torch.Generator().manual_seed(0)).numpy()
    drawn = est.sample(20_000, random_state=5, rounded=False).to_numpy()
    low = law.ppf(0.02)
    expected = (1 - SHARE) * (inside < low).mean(axis=0) + SHARE * 0.02
    error = np.sqrt(2 * expected / 20_000)
    assert (np.abs((drawn < low).mean(axis=0) - expected) < 4 * error).all()


def test_categories_and_missing_cells_outside(rng):
    table = pd.DataFrame(
        {"n": rng.normal(size=400), "c": rng.choice(["x", "y"], 400, p=[0.8, 0.2])}
    )
    table.loc[::5, "n"] = None
    est = Roundtrip(1, noise=Mixture(outside_share=SHARE), **TINY).fit(table)
    model, share = est.model_, table["c"].value_counts(normalize=True)
    one = model.noise.numbers
    law = student_t(2, float(one.tail_centre[0, 0]), float(one.tail_scale[0, 0]))
    rows = torch.tensor([[3.0, 0.0], [3.0, 1.0], [math.nan, 1.0]]).double()
    expected = math.log(SHARE) + np.log([share["x"], share["y"], share["y"]])
    expected[:2] += law.logpdf(3.0)
    np.testing.assert_allclose(model.log_outside(rows).detach(), expected, atol=0.05)


def test_given_a_context_rows_far_outside_follow_the_tails(mixture):
    labels = np.where(mixture.X[:, 0] > 0, "right", "left")
    est = Roundtrip(2, noise=Mixture(outside_share=SHARE), **TINY).fit(mixture.X, context=labels)
    far = np.full((1, 2), 1e6)
    values = [est.density(far, context=label).log_density[0] for label in ("left", "right")]
    assert values[0] == pytest.approx(values[1], abs=0.05)


def test_noise_without_outputs_for_such_rows_is_refused():
    G, H = torch.nn.Linear(1, 2), torch.nn.Linear(2, 1)
    with pytest.raises(ValueError, match="outside_outputs"):
        RoundtripModel(G, H, 1, sigma=0.5, outside_share=0.1)


def test_surprises_add_up_far_outside(est):
    x = torch.tensor([[0.0, 0.0], [40.0, -60.0]]).double()
    parts = surprise_parts(est.model_.with_precise_encoder(), x, tol=0.05, seed=0)
    truth, outside = quadrature(est.model_, x)
    np.testing.assert_allclose(parts.total, -truth, atol=0.1)
    assert float(parts.residual[1].sum()) == pytest.approx(-outside[1], abs=0.1)
    assert float(parts.latent[1]) == pytest.approx(-math.log(SHARE), abs=0.1)


def test_the_share_survives_a_file(est, tmp_path):
    est.save(tmp_path / "model.rt")
    assert load(tmp_path / "model.rt").model_.outside_share == SHARE


@pytest.mark.parametrize("share", [-0.1, 1.0, "a", None])
def test_bad_shares_are_refused(share):
    with pytest.raises(ValueError, match="outside_share"):
        Roundtrip(noise=Mixture(outside_share=share)).fit(np.eye(5))
