import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TINY, TINY_ADVERSARIAL
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from roundtrip import (
    MLP,
    Adversarial,
    Hybrid,
    Isotropic,
    Likelihood,
    Mixture,
    MixturePrior,
    Proposal,
    Residual,
    Roundtrip,
    Validation,
    load,
)
from roundtrip.datasets import (
    make_independent_mixture,
    make_involute,
    make_octagon_mixture,
)
from roundtrip.training.validators import BoundValidation


# One check skips itself: array API input, which scikit-learn only checks where SciPy's array API is
# switched on by an environment variable, and which Roundtrip does not claim to support.
@parametrize_with_checks([Roundtrip(**TINY)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_shapes_and_types(fitted, adversarial, mixture):
    X = mixture.X[:5]
    assert fitted.score_samples(X).shape == (5,)
    assert fitted.score_samples(X).dtype == np.float64
    assert fitted.score(X) == pytest.approx(fitted.score_samples(X).mean(), abs=2e-3)
    assert fitted.transform(X).shape == (5, 2)
    assert fitted.inverse_transform(fitted.transform(X)).shape == X.shape
    assert fitted.sample(7).shape == (7, 2)
    for est, method in (
        (fitted, "adaptive"),
        (fitted, "importance"),
        (adversarial, "adaptive"),
        (adversarial, "laplace"),
    ):
        result = est.density(X, method=method)
        assert result.method == method
        for entry in (result.log_density, result.std_error, result.ess, result.n_evaluations):
            assert entry.shape == (5,)


def test_number_of_draws_and_sigma_are_respected(fitted, adversarial, mixture):
    X = mixture.X[:5]
    assert (fitted.density(X, method="importance", n_samples=33).n_evaluations == 33).all()
    far = adversarial.density(X, sigma=5.0).log_density
    assert np.abs(far - adversarial.density(X).log_density).max() > 0.5
    same = adversarial.density(X, sigma=adversarial.sigma_).log_density
    np.testing.assert_allclose(same, adversarial.score_samples(X), rtol=1e-9)


def test_what_needs_noise_of_constant_width_says_so(fitted, mixture):
    with pytest.raises(ValueError, match="sigma is for Gaussian noise of constant width"):
        fitted.density(mixture.X[:2], sigma=1.0)
    with pytest.raises(ValueError, match=r"laplace.* needs Gaussian noise of constant width"):
        fitted.density(mixture.X[:2], method="laplace")
    with pytest.raises(AttributeError, match="has no sigma_"):
        fitted.sigma_  # noqa: B018
    with pytest.raises(ValueError, match="noise must be 'isotropic', got Mixture"):
        Roundtrip(objective="adversarial", noise="mixture").fit(mixture.X)


@pytest.mark.parametrize("name", ["fitted", "adversarial"])
def test_encodings_are_of_double_precision(name, mixture, request):
    """In float32 a row's encoding depends on its place in the table on some processors."""
    est = request.getfixturevalue(name)
    x = torch.from_numpy(est.schema_.scaling.apply(mixture.X[:5]))
    precise = est.model_.with_precise_encoder()
    with torch.no_grad():
        z = precise.encode(x)
        assert z.dtype == torch.float64
        np.testing.assert_allclose(est.transform(mixture.X[:5]), z.numpy(), rtol=1e-12)
        assert est.model_.encode(x).dtype == torch.float32  # the model itself stays as it is
    assert precise.generator is est.model_.generator


def test_transform_and_inverse_are_the_networks_in_the_users_units(adversarial, mixture):
    fitted = adversarial
    X = mixture.X[:5]
    scaling = fitted.schema_.scaling
    scaled = torch.from_numpy((X - scaling.shift) / scaling.scale).float()
    with torch.no_grad():
        z = fitted.model_.encoder(scaled)
        x = fitted.model_.generator(z).numpy() * scaling.scale + scaling.shift
    np.testing.assert_allclose(fitted.transform(X), z, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fitted.inverse_transform(z.numpy()), x, rtol=1e-5, atol=1e-6)


def test_dataframe_in_dataframe_out(mixture):
    frame = pd.DataFrame(mixture.X[:300], columns=["width", "height"])
    est = Roundtrip(**TINY).fit(frame)
    assert list(est.sample(3).columns) == ["width", "height"]
    assert list(est.feature_names_in_) == ["width", "height"]
    with pytest.raises(ValueError, match="feature names"):
        est.score_samples(frame.rename(columns={"width": "depth"}))
    array = Roundtrip(**TINY).fit(mixture.X[:300])
    np.testing.assert_array_equal(est.score_samples(frame), array.score_samples(frame.to_numpy()))


def test_same_seed_same_result(mixture):
    first, second, other = (
        Roundtrip(**(TINY | {"random_state": seed})).fit(mixture.X) for seed in (1, 1, 2)
    )
    X = mixture.X[:20]
    np.testing.assert_array_equal(first.score_samples(X), second.score_samples(X))
    np.testing.assert_array_equal(first.sample(5, random_state=0), second.sample(5, random_state=0))
    assert not np.array_equal(first.score_samples(X), other.score_samples(X))
    assert first.history_["bound"] == second.history_["bound"]


def test_global_random_state_is_not_touched(mixture):
    torch.manual_seed(0)
    np.random.seed(0)
    before, numpy_before = torch.get_rng_state(), repr(np.random.get_state())
    Roundtrip(**(TINY | {"random_state": None})).fit(mixture.X[:200]).sample(3)
    assert torch.equal(torch.get_rng_state(), before)
    assert repr(np.random.get_state()) == numpy_before


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_change_of_units_shifts_by_log_det(mixture, scale):
    """Scaling makes the fit the same, so that units change log p by log|det| and nothing else."""
    factors = np.array([256.0, 1 / 8])  # powers of two: scaled data is the same to the last bit
    settings = TINY | {"scale": scale}
    plain = Roundtrip(**settings).fit(mixture.X)
    changed = Roundtrip(**settings).fit(mixture.X * factors)
    np.testing.assert_allclose(
        changed.score_samples(mixture.X[:100] * factors),
        plain.score_samples(mixture.X[:100]) - np.log(factors).sum(),
        rtol=0,
        atol=1e-9,
    )


def test_scaling_by_hand_equals_scaling_inside(mixture):
    X = mixture.X
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    inside = Roundtrip(**(TINY | {"scale": "minmax"})).fit(X)
    by_hand = Roundtrip(**(TINY | {"scale": None})).fit((X - low) / width)
    np.testing.assert_allclose(
        inside.score_samples(X[:100]),
        by_hand.score_samples((X[:100] - low) / width) - np.log(width).sum(),
        atol=1e-3,
    )


def test_samples_follow_the_density(fitted):
    """Draws and densities describe one distribution: E[1/p over a box] is the box's area."""
    samples = fitted.sample(8_000, random_state=0)
    inside = (np.abs(samples) < 0.5).all(axis=1)
    density = np.exp(
        fitted.density(samples[inside], method="importance", n_samples=500).log_density
    )
    weights = 1 / density
    area = weights.sum() / len(samples)
    error = np.sqrt((weights**2).sum()) / len(samples)
    assert abs(area - 1.0) < 4 * error + 0.02
    assert error < 0.05


def test_samples_do_not_pile_up_at_the_ends_of_rounded_columns():
    """With noise as wide as the column, a third of the draws lie below its smallest value."""
    X = np.round(np.random.RandomState(0).exponential(size=(400, 2)), 1)
    X[::2, 1] += 0.0123456 * np.random.RandomState(1).uniform(size=200)  # partly rounded
    settings = TINY | {"noise": Isotropic(sigma=1.0), "random_state": 0}
    est = Roundtrip(**settings).fit(X)
    spread, samples = (
        est.sample(2000, random_state=0, rounded=rounded) for rounded in (False, True)
    )
    assert (spread < X.min(axis=0) - 0.1).mean() > 0.1
    assert (samples >= X.min(axis=0)).all()
    assert (samples <= X.max(axis=0)).all()
    assert ((samples == X.min(axis=0)).mean(axis=0) < 0.1).all()


def test_fitted_density_integrates_to_one(fitted):
    grid = np.linspace(-5, 5, 48)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    density = np.exp(fitted.density(points, method="importance", n_samples=300).log_density)
    assert density.sum() * (grid[1] - grid[0]) ** 2 == pytest.approx(1, abs=0.02)


SIMULATED = {
    "mixture sd 0.1": lambda seed: make_independent_mixture(3000, sd=0.1, random_state=seed),
    "mixture sd 0.5": lambda seed: make_independent_mixture(3000, sd=0.5, random_state=seed),
    "octagon": lambda seed: make_octagon_mixture(3000, random_state=seed),
    "involute": lambda seed: make_involute(3000, random_state=seed),
}


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
@pytest.mark.parametrize("make", SIMULATED.values(), ids=SIMULATED.keys())
def test_held_out_likelihood_does_not_exceed_the_truth(make):
    data, test = make(0), make(1)
    est = Roundtrip(
        2,
        objective=Likelihood(batch_size=256, min_steps_per_epoch=60),
        noise=Mixture(boxes=16),
        network=Residual(64, 2),
        max_epochs=8,
        tol=0.1,
        random_state=0,
    ).fit(data.X)
    test = replace(test, X=test.X[:1500])
    gap = est.score_samples(test.X) - test.log_density(test.X)
    assert gap.mean() <= 3 * gap.std() / np.sqrt(len(gap))
    if make is not SIMULATED["mixture sd 0.5"]:  # that one is nearly Gaussian
        gaussian = multivariate_normal(data.X.mean(axis=0), np.cov(data.X.T)).logpdf(test.X)
        assert gap.mean() > 0.6 * (gaussian - test.log_density(test.X)).mean()


def test_paper_preset_is_the_papers():
    est = Roundtrip.paper(latent_dim=5, random_state=3)
    objective = est.objective
    assert est.network == MLP((512,) * 10, (256,) * 10)
    assert objective.discriminator_x == (256,) * 4
    assert objective.discriminator_z == (128,) * 2
    assert (objective.alpha, objective.beta) == (10, 10)
    assert (objective.learning_rate, objective.batch_size) == (2e-4, 64)
    assert objective.sigma_grid == (0.01, 0.05, 0.1, 0.2, 0.4, 0.5)
    assert (objective.sigma_epochs, objective.averaging) == (20, 0)
    assert (objective.pool_size, objective.sampling) == (50, "replacement")
    assert est.validation.patience == 10
    assert (est.proposal.draws, est.proposal.df) == (40_000, 1.0)
    assert (est.latent_dim, est.random_state) == (5, 3)
    assert Roundtrip.paper(latent_dim=2, objective__batch_size=32).objective.batch_size == 32
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        Roundtrip.paper(latent_dim=2, colour="red")


@pytest.mark.parametrize(("latent_dim", "features"), [(1, 4), (3, 3), (6, 2), (2, 1)])
def test_any_latent_dimension(latent_dim, features, rng):
    X = rng.normal(size=(100, features))
    est = Roundtrip(**TINY, latent_dim=latent_dim).fit(X)
    assert np.isfinite(est.density(X, method="importance").log_density).all()
    paper = Roundtrip(**TINY_ADVERSARIAL, latent_dim=latent_dim).fit(X)
    assert np.isfinite(paper.density(X, method="laplace").log_density).all()
    assert est.sample(2).shape == (2, features)
    assert est.get_feature_names_out().tolist() == [f"roundtrip{i}" for i in range(latent_dim)]


NASTY = {
    "constant column": lambda rng: np.c_[rng.normal(size=(60, 2)), np.full(60, 7.0)],
    "all constant": lambda rng: np.ones((30, 2)),
    "duplicate rows": lambda rng: np.repeat(rng.normal(size=(5, 3)), 20, axis=0),
    "fewer rows than features": lambda rng: rng.normal(size=(4, 20)),
    "two rows": lambda rng: rng.normal(size=(2, 3)),
    "tiny scale": lambda rng: 1e-12 * rng.normal(size=(60, 2)),
    "tiniest scale": lambda rng: 1e-30 * rng.normal(size=(60, 2)),
    "huge scale": lambda rng: 1e12 * rng.normal(size=(60, 2)),
    "integers": lambda rng: rng.integers(0, 3, size=(60, 2)),
    "booleans": lambda rng: rng.integers(0, 2, size=(60, 2)).astype(bool),
    "float32": lambda rng: rng.normal(size=(60, 2)).astype(np.float32),
    "heavy tails": lambda rng: rng.standard_cauchy(size=(60, 2)) ** 3,
}


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")  # finite, if not always certain
@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("make", NASTY.values(), ids=NASTY.keys())
def test_nasty_tables_give_finite_densities(make, scale, rng):
    X = make(rng)
    est = Roundtrip(**(TINY | {"scale": scale})).fit(X)
    assert np.isfinite(est.score_samples(X)).all()
    assert np.isfinite(est.sample(5)).all()
    paper = Roundtrip(**(TINY_ADVERSARIAL | {"scale": scale})).fit(X)
    assert np.isfinite(paper.score_samples(X)).all()
    assert np.isfinite(paper.density(X, method="laplace").log_density).all()


OBJECTIVES = {
    "likelihood": {},
    "hybrid": {
        "objective": Hybrid(
            discriminator_x=(16, 16), discriminator_z=(16, 16), batch_size=32, min_steps_per_epoch=4
        )
    },
}


@pytest.mark.parametrize("noise", ["isotropic", "diagonal", "heteroscedastic", "mixture"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_and_noise(objective, noise, mixture, tmp_path):
    X = mixture.X[:300]
    est = Roundtrip(**(TINY | OBJECTIVES[objective]), latent_dim=2, noise=noise).fit(X)
    scores = est.score_samples(X[:20])
    assert np.isfinite(scores).all()
    assert np.isfinite(est.sample(5)).all()
    est.save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    np.testing.assert_array_equal(again.score_samples(X[:20]), scores)
    np.testing.assert_array_equal(again.sample(5, random_state=1), est.sample(5, random_state=1))


def test_max_time_is_kept(mixture):
    start = time.perf_counter()
    est = Roundtrip(**(TINY | {"max_epochs": 100_000})).fit(mixture.X, max_time=1.0)
    assert est.stopped_by_ == "max_time"
    assert time.perf_counter() - start < 2


def test_validation_data_of_ones_own(mixture):
    est = Roundtrip(**TINY).fit(mixture.X[:500], validation_data=mixture.X[500:900])
    plain = Roundtrip(**TINY).fit(mixture.X[:500])
    assert est.history_ != plain.history_
    with pytest.raises(ValueError, match="features"):
        Roundtrip(**TINY).fit(mixture.X[:500], validation_data=np.ones((3, 5)))


BAD_TABLES = {
    "infinite": (np.array([[1.0, np.inf], [2.0, 3.0]]), "infinity"),
    "all missing": (np.array([[1.0, np.nan], [2.0, np.nan]]), r"column 1: all its cells are miss"),
    "an empty row": (
        np.array([[1.0, 2.0], [np.nan, np.nan]]),
        r"1 row has no observed .*: 1; drop",
    ),
    "one dimension": (np.arange(5.0), "2D array"),
    "empty": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((5, 0)), "0 feature"),
    "one row": (np.ones((1, 3)), "minimum of 2"),
    "too wide a range": (np.array([[-1e308, 1.0], [1e308, 2.0]]), "too wide"),
}


@pytest.mark.parametrize(("X", "message"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_tables_are_refused_at_fit(tiny, X, message):
    with pytest.raises(ValueError, match=message):
        tiny.fit(X)


@pytest.mark.parametrize("name", ["infinite", "strings", "one dimension", "empty"])
@pytest.mark.parametrize("call", ["score_samples", "density", "transform", "score"])
def test_bad_tables_are_refused_at_scoring(fitted, name, call):
    strings = np.array([["a", "b"], ["c", "d"]])
    bad = BAD_TABLES | {"strings": (strings, "column 0: fit had numbers, but row 0 has 'a'")}
    X, message = bad[name]
    with pytest.raises(ValueError, match=message if name != "empty" else "0 sample"):
        getattr(fitted, call)(X)


def test_errors_name_the_columns_of_a_dataframe(tiny):
    frame = pd.DataFrame({"fine": [1.0, 2.0], "far": [1.0, np.inf], "gap": [None, 3.0]})
    with pytest.raises(ValueError, match=r"infinity.* \(in columns far; first in row 1: inf\)"):
        tiny.fit(frame)
    with pytest.raises(ValueError, match=r"column 'names': it has 30 different values in 30 rows"):
        tiny.fit(pd.DataFrame({"x": range(30), "names": [f"person {i}" for i in range(30)]}))


def test_a_table_without_columns_is_refused(tiny):
    with pytest.raises(ValueError, match="no columns"):
        tiny.fit(pd.DataFrame(index=range(3)))


def test_wrong_number_of_columns_at_scoring(fitted):
    with pytest.raises(ValueError, match="3 features"):
        fitted.score_samples(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="Z has 5 columns"):
        fitted.inverse_transform(np.zeros((4, 5)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"latent_dim": 0}, "latent_dim must be an integer of at least 1, got 0"),
        ({"latent_dim": "many"}, "latent_dim"),
        ({"network": MLP(generator_widths=())}, "generator_widths"),
        ({"network": MLP(encoder_widths=(16, -1))}, "encoder_widths"),
        ({"network": Residual(width=0)}, "width"),
        ({"network": "transformer"}, "network must be 'residual', 'mlp', 'conv', 'auto' or an"),
        ({"objective": Adversarial(alpha=-1)}, "alpha"),
        ({"objective__learning_rate": 0}, "learning_rate must be a number above 0, got 0"),
        ({"objective__learning_rate": float("nan")}, "learning_rate"),
        ({"objective__batch_size": 2.5}, "batch_size"),
        ({"objective__batch_size": 1}, "batch_size must be an integer of at least 2"),
        ({"objective__averaging": 1.0}, "averaging"),
        ({"objective": Adversarial(sigma_grid=0.1)}, "sigma_grid must be a sequence"),
        ({"objective": Adversarial(sigma_grid=())}, "sigma_grid"),
        ({"objective": Adversarial(sigma_epochs=0)}, "sigma_epochs"),
        ({"objective": Adversarial(sampling="lucky")}, "sampling must be one of"),
        ({"objective": "luck"}, "objective must be 'likelihood', 'adversarial', 'hybrid' or an"),
        ({"objective": Isotropic()}, "objective must be .* got Isotropic"),
        ({"noise": Isotropic(sigma=0)}, "sigma"),
        ({"prior": MixturePrior(components=0)}, "components"),
        ({"proposal": Proposal(df=0.01)}, "df"),
        ({"validation": Validation(fraction=1.5)}, "fraction"),
        ({"validation": 0.1}, "validation must be 'auto' or an instance of Validation, got 0.1"),
        ({"max_epochs": True}, "max_epochs"),
        ({"scale": "robust"}, "scale must be one of"),
        ({"device": "abacus"}, "device"),
        ({"device": "meta"}, "device"),
    ],
)
def test_bad_parameters(parameters, message, mixture):
    est = clone(Roundtrip(**TINY).set_params(**parameters))  # only `fit` checks
    with pytest.raises(ValueError, match=message):
        est.fit(mixture.X)


def test_bad_calls(fitted, mixture):
    with pytest.raises(ValueError, match="method must be one of"):
        fitted.density(mixture.X, method="magic")
    with pytest.raises(ValueError, match="n_samples"):
        fitted.density(mixture.X, method="importance", n_samples=0)
    with pytest.raises(ValueError, match="n_samples is for method='importance'"):
        fitted.density(mixture.X, n_samples=10)
    with pytest.raises(ValueError, match="tol is for method='adaptive'"):
        fitted.density(mixture.X, method="laplace", tol=0.1)
    with pytest.raises(ValueError, match="sigma"):
        fitted.density(mixture.X, sigma=-1)
    with pytest.raises(ValueError, match="n_samples"):
        fitted.sample(0)


@pytest.mark.parametrize(
    ("X", "parameters", "message"),
    [
        (np.full((5, 2), np.nan), {}, "missing"),
        (np.ones((5, 3)), {"missing": "drop"}, "missing must be one of"),
        (np.ones((5, 3)), {"columns": {7: "category"}}, "names 7, but the table has no such col"),
        (np.ones((5, 3)), {"columns": {0: "text"}}, "must be one of 'number', 'category'"),
        (np.array([[1e300] * 3, [2e300] * 3]), {"scale": None}, "too wide"),
        (np.ones((5, 3)), {"device": "abacus"}, "device"),
        (np.ones((5, 3)), {"noise": Isotropic(sigma=-1)}, "sigma"),
    ],
)
def test_failed_fit_leaves_the_earlier_fit_alone(mixture, X, parameters, message):
    est = Roundtrip(**TINY).fit(mixture.X)
    before = est.score_samples(mixture.X[:5])
    with pytest.raises(ValueError, match=message):
        est.set_params(**parameters).fit(X)
    np.testing.assert_array_equal(est.score_samples(mixture.X[:5]), before)
    with pytest.raises(ValueError, match=message):
        Roundtrip(**(TINY | parameters)).fit(X)


def test_unfitted_says_so():
    with pytest.raises(NotFittedError):
        Roundtrip().score_samples(np.ones((2, 2)))


def test_dataframe_without_string_names(mixture):
    frame = pd.DataFrame(mixture.X[:100])
    sample = Roundtrip(**TINY).fit(frame).sample(3)
    assert list(sample.columns) == [0, 1]


def test_fixed_sigma_is_kept(mixture):
    est = Roundtrip(**TINY_ADVERSARIAL, noise=Isotropic(sigma=0.123)).fit(mixture.X)
    assert est.sigma_ == pytest.approx(0.123)


def test_fitted_attributes(fitted):
    assert fitted.n_iter_ == 2
    assert 1 <= fitted.best_epoch_ <= 2
    assert {len(values) for values in fitted.history_.values()} == {2}
    assert fitted.stopped_by_ == "max_epochs"
    assert not fitted.model_.training


def test_validation_likelihood_is_in_the_users_units(mixture):
    settings = TINY | {"validation": Validation(draws=2000)}
    est = Roundtrip(**settings).fit(mixture.X)
    far = Roundtrip(**settings).fit(mixture.X * 1024)
    shift = np.subtract(
        est.history_["validation_log_likelihood"], far.history_["validation_log_likelihood"]
    )
    np.testing.assert_allclose(shift, 2 * np.log(1024), atol=1e-6)


def test_scoring_does_not_reuse_the_draws_that_chose_sigma(mixture, monkeypatch):
    """Sigma and epoch are chosen by what flatters them: scores need draws of their own."""
    seeds = []

    class Spy(BoundValidation):
        def __init__(self, *args, seed, **settings):
            seeds.append(seed)
            super().__init__(*args, seed=seed, **settings)

    monkeypatch.setattr("roundtrip.training.likelihood.BoundValidation", Spy)
    est = Roundtrip(**TINY).fit(mixture.X)
    assert seeds
    assert est.scoring_seed_ not in seeds


def test_progress_bar_shows_what_matters(mixture, capfd):
    Roundtrip(**(TINY | {"verbose": 1})).fit(mixture.X)
    captured = capfd.readouterr()
    assert captured.out == ""
    for part in ("epoch 2", "100%", "log-lik", "bound", "left", " rows/s"):
        assert part in captured.err
    Roundtrip(**TINY).fit(mixture.X)
    assert capfd.readouterr().err == ""


def test_estimates_carry_the_labels_of_their_rows(mixture):
    table = pd.DataFrame(mixture.X[:100], columns=["a", "b"], index=range(1000, 1100))
    est = Roundtrip(**TINY).fit(table)
    assert est.density(table[5:8]).to_frame().index.tolist() == [1005, 1006, 1007]


def test_no_certificate_beyond_the_digits_of_a_number(mixture):
    est = Roundtrip(**TINY | {"noise": "diagonal"}).fit(mixture.X)
    with pytest.warns(UserWarning, match="did not converge"):
        result = est.density([[1e30, 0.0]])
    assert not result.converged.any()


@pytest.mark.parametrize("far", [1e6, 1e30, 1e200])
def test_tails_of_the_default_give_densities_at_any_distance(mixture, far):
    """p falls with the third power of the distance, the tail of the noise in one column."""
    est = Roundtrip(**TINY).fit(mixture.X)
    result = est.density([[far, 0.0], [10 * far, 0.0]])
    assert result.converged.all()
    fall = result.log_density[0] - result.log_density[1]
    assert abs(fall - 3 * np.log(10)) < 5 * np.hypot(*result.std_error)


def test_means_are_in_the_units_of_the_table(fitted, mixture):
    X = mixture.X[:1800]
    mean, rows = fitted.density_mean(X, tol=0.02), fitted.density(X)
    error = np.hypot(mean.std_error, np.sqrt((rows.std_error**2).sum()) / len(X))
    assert abs(mean.mean - rows.log_density.mean()) < 4 * error + 0.002
