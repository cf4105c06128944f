"""Components as parameters: shorthands, nested settings, clones, searches."""

import inspect
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from conftest import TINY
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from roundtrip import (
    MLP,
    Adversarial,
    Conv,
    Diagonal,
    Heteroscedastic,
    Hybrid,
    Isotropic,
    Likelihood,
    Mixture,
    MixturePrior,
    NormalPrior,
    Proposal,
    Residual,
    Roundtrip,
    RoundtripClassifier,
    RoundtripDetector,
    Validation,
)
from roundtrip.options import COMPONENTS, PAPER, PAPER_IMAGES, fit_options


@pytest.mark.parametrize("kind", [Roundtrip, RoundtripClassifier, RoundtripDetector])
def test_constructors_stay_small(kind):
    assert len(inspect.signature(kind).parameters) <= 18


@pytest.mark.parametrize(
    ("parameter", "shorthand", "component"),
    [
        ("objective", "likelihood", Likelihood()),
        ("objective", "adversarial", Adversarial()),
        ("objective", "hybrid", Hybrid()),
        ("noise", "isotropic", Isotropic()),
        ("noise", "diagonal", Diagonal()),
        ("noise", "heteroscedastic", Heteroscedastic()),
        ("noise", "mixture", Mixture()),
        ("network", "residual", Residual()),
        ("network", "mlp", MLP()),
        ("prior", "normal", NormalPrior()),
        ("prior", "mixture", MixturePrior()),
        ("validation", "auto", Validation()),
        ("proposal", "auto", Proposal()),
    ],
)
def test_a_string_stands_for_a_component(parameter, shorthand, component):
    given = {"noise": "isotropic", "prior": "normal", parameter: shorthand}
    explicit = given | {parameter: component}
    if shorthand == "adversarial":
        given, explicit = given | {"network": "mlp"}, explicit | {"network": "mlp"}
    assert fit_options(Roundtrip(**given).get_params()) == fit_options(
        Roundtrip(**explicit).get_params()
    )


def test_what_auto_stands_for_depends_on_objective_and_rows():
    table = fit_options(Roundtrip().get_params())
    assert (table.noise, table.prior, table.network) == (Mixture(), MixturePrior(), Residual())
    large = {"batch_size": 512, "min_steps_per_epoch": 100}
    assert table.objective == Likelihood(draws=2, learning_rate=8e-3, **large)
    small = fit_options(Roundtrip().get_params(), rows=300, has_max_time=True)
    assert (small.network, small.max_epochs) == (Residual(width=32), "auto")
    assert small.objective.with_params(**large) == table.objective
    assert (small.objective.batch_size, small.objective.min_steps_per_epoch) == (256, 10)
    assert table.validation == Validation(rows=1000, draws=10)
    assert (table.max_epochs, table.latent_dim) == (60, "auto")
    images = fit_options(Roundtrip().get_params(), pixels=64)
    assert (images.noise, images.latent_dim) == (Isotropic(sigma=0.25), 16)
    assert images.objective == Likelihood(draws=1, learning_rate=4e-3, **large)
    paper = fit_options(Roundtrip(objective="adversarial").get_params())
    assert (paper.noise, paper.prior) == (Isotropic(), NormalPrior())
    assert (paper.network, paper.max_epochs) == (MLP((256,) * 5, (128,) * 5), 30)
    assert fit_options(Roundtrip().get_params(), has_max_time=True).max_epochs == np.inf
    for preset in (PAPER, PAPER_IMAGES):
        assert "auto" not in preset.values()
        for part in preset.values():
            if isinstance(part, COMPONENTS) and not isinstance(part, Isotropic):
                assert "auto" not in part.get_params().values()


@pytest.mark.parametrize(
    ("before", "settings", "after"),
    [
        ({"objective": "adversarial"}, {"objective__alpha": 5}, Adversarial(alpha=5)),
        ({"objective": Hybrid(beta=2)}, {"objective__alpha": 5}, Hybrid(alpha=5, beta=2)),
        ({}, {"objective__draws": 3}, Likelihood(draws=3)),
        ({}, {"objective": "hybrid", "objective__alpha": 5}, Hybrid(alpha=5)),
        ({}, {"objective__alpha": 5, "objective": "hybrid"}, Hybrid(alpha=5)),
        ({}, {"noise__boxes": 8}, Mixture(boxes=8)),
        ({"noise": Mixture(gaussians=2)}, {"noise__boxes": 8}, Mixture(gaussians=2, boxes=8)),
        ({"objective": "adversarial"}, {"noise__sigma": 0.2}, Isotropic(sigma=0.2)),
        ({}, {"objective": "adversarial", "noise__sigma": 0.2}, Isotropic(sigma=0.2)),
        ({}, {"network__width": 8, "network__blocks": 2}, Residual(8, 2)),
        ({"network": "conv"}, {"network__batch_norm": True}, Conv(hidden=128, batch_norm=True)),
        ({}, {"prior__components": 4}, MixturePrior(components=4)),
        ({}, {"validation__draws": 50}, Validation(draws=50)),
        ({"proposal": Proposal(df=3.0)}, {"proposal__draws": 9}, Proposal(df=3.0, draws=9)),
    ],
)
def test_settings_of_components_are_set_by_name(before, settings, after):
    est = Roundtrip(**before)
    parameter = next(name for name in settings if "__" in name).partition("__")[0]
    assert est.set_params(**settings) is est
    assert getattr(est, parameter) == after
    whole = {name: value for name, value in settings.items() if "__" not in name}
    untouched = Roundtrip(**before | whole)
    assert (
        clone(est).set_params(**{parameter: "auto"}).get_params()
        == untouched.set_params(**{parameter: "auto"}).get_params()
    )


@pytest.mark.parametrize(
    ("parameters", "settings", "message"),
    [
        ({}, {"objective__alpha": 1}, "Likelihood has no setting 'alpha'; it has draws, learning"),
        ({"objective": "adversarial"}, {"noise__boxes": 8}, "'boxes'; it has sigma"),
        ({"objective": "adversarial"}, {"objective__draws": 2}, "Adversarial has no setting"),
        ({"prior": "normal"}, {"prior__components": 3}, "NormalPrior .* 'components'; it has none"),
        ({"network": "mlp"}, {"network__blocks": 3}, "MLP .*; it has generator_widths, encoder"),
        ({"noise": "loud"}, {"noise__sigma": 1}, "noise must be 'isotropic', .* got 'loud'"),
        ({}, {"colour__hue": 1}, "Invalid parameter 'colour'"),
        ({}, {"batch_size": 32}, "Invalid parameter 'batch_size'"),
    ],
)
def test_a_setting_that_does_not_apply_is_refused(parameters, settings, message):
    est = Roundtrip(**parameters)
    before = est.get_params()
    with pytest.raises(ValueError, match=message):
        est.set_params(**settings)
    assert est.get_params() == before


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(Mixture, "sigma"), (Likelihood, "alpha"), (Isotropic, "boxes"), (Residual, "hidden")],
)
def test_components_take_their_own_settings_only(kind, setting):
    with pytest.raises(TypeError, match=setting):
        kind(**{setting: 1})


@pytest.mark.parametrize("kind", COMPONENTS)
def test_components_are_values(kind):
    component = kind()
    assert component == kind()
    assert hash(component) == hash(kind())
    assert clone(component) is component
    assert pickle.loads(pickle.dumps(component)) == component
    assert repr(component) == f"{kind.__name__}()"
    assert component.with_params() == component
    for name in component.get_params():
        with pytest.raises(FrozenInstanceError):
            setattr(component, name, None)


def test_an_estimator_is_shown_and_cloned_with_its_components():
    est = Roundtrip(2, objective=Hybrid(alpha=5), noise=Mixture(boxes=8), network="residual")
    assert repr(est) == (
        "Roundtrip(latent_dim=2, network='residual', noise=Mixture(boxes=8),\n"
        "          objective=Hybrid(alpha=5))"
    )
    other = clone(est)
    assert other.get_params() == est.get_params()
    other.set_params(objective__alpha=7)
    assert (est.objective.alpha, other.objective.alpha) == (5, 7)
    assert est.get_params()["noise__boxes"] == 8
    assert "alpha=5" in est._repr_html_()


@pytest.mark.parametrize("kind", [RoundtripClassifier, RoundtripDetector])
def test_settings_reach_through_estimators(kind):
    outer = kind(estimator=Roundtrip())
    outer.set_params(estimator__objective__draws=4, estimator__noise=Isotropic())
    assert outer.estimator.objective == Likelihood(draws=4)
    assert outer.get_params()["estimator__objective__draws"] == 4
    assert clone(outer).estimator.get_params() == outer.estimator.get_params()


def test_grid_search_over_components_and_their_settings(mixture):
    noises = [Mixture(boxes=8), Isotropic()]
    search = GridSearchCV(
        Roundtrip(**TINY).set_params(tol=0.5, objective__min_steps_per_epoch=40),
        {"noise": noises, "objective__draws": [1, 2]},
        cv=2,
    ).fit(mixture.X[:60])
    results = search.cv_results_
    assert [params["noise"] for params in results["params"]] == [noises[0]] * 2 + [noises[1]] * 2
    assert np.isfinite(results["mean_test_score"]).all()
    assert len(set(results["mean_test_score"])) == 4  # every setting made another fit
    best = search.best_estimator_
    assert best.options_.noise == search.best_params_["noise"]
    assert best.options_.objective.draws == search.best_params_["objective__draws"]
    assert best.options_.objective.batch_size == TINY["objective"].batch_size


def test_a_bad_setting_can_be_mended():
    """Settings are checked in fit, not when they are set."""
    est = Roundtrip().set_params(noise__gaussians=-1)
    with pytest.raises(ValueError, match="gaussians must be an integer of at least 1"):
        fit_options(est.get_params(deep=False))
    est.set_params(noise__gaussians=3)
    assert fit_options(est.get_params(deep=False)).noise == Mixture(gaussians=3)


def test_wide_tables_are_trained_at_a_lower_rate():
    rates = [
        fit_options(Roundtrip().get_params(), rows=500, features=columns).objective.learning_rate
        for columns in (9, 24, 96)
    ]
    assert rates == [8e-3, 8e-3, 4e-3]
    given = Roundtrip(objective=Likelihood(learning_rate=0.1)).get_params()
    assert fit_options(given, rows=500, features=96).objective.learning_rate == 0.1
