"""Components, whichever they are."""

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from roundtrip import MLP, Adversarial, Likelihood, Mixture, Residual, Roundtrip, Validation
from roundtrip.options import COMPONENTS
from roundtrip.parameters import Component

EACH = pytest.mark.parametrize("kind", COMPONENTS, ids=lambda kind: kind.__name__)


@dataclass(frozen=True, repr=False)
class Own(Component):
    """A setting without a default, and one with."""

    required: int
    grid: object = (1.0, 2.0)


@EACH
def test_get_params_are_the_arguments_of_the_constructor(kind):
    params = kind().get_params()
    assert kind(**params) == kind()
    assert kind().get_params(deep=False) == params


@EACH
def test_a_new_setting_gives_a_new_component(kind):
    first = kind()
    for name, value in first.get_params().items():
        other = first.with_params(**{name: 123})
        assert type(other) is kind
        assert other.get_params() == first.get_params() | {name: 123}
        assert other != first
        assert getattr(first, name) is value
        with pytest.raises(FrozenInstanceError):
            setattr(first, name, 123)


@EACH
def test_unknown_settings_are_refused_by_name(kind):
    with pytest.raises(TypeError, match="colour"):
        kind(colour="red")
    with pytest.raises(ValueError, match=f"{kind.__name__} has no setting 'colour'") as caught:
        kind().with_params(colour="red")
    assert all(name in str(caught.value) for name in kind().get_params())


@EACH
def test_defaults_are_allowed(kind):
    kind().check()


@EACH
def test_wrong_values_are_refused_by_name_when_checked(kind):
    for name in kind().get_params():
        wrong = kind().with_params(**{name: object()})
        with pytest.raises(ValueError, match=name):
            wrong.check()


def test_settings_of_another_objective_can_not_be_given():
    for setting in ("alpha", "discriminator_x", "pool_size", "sigma_grid", "sampling"):
        with pytest.raises(TypeError, match=setting):
            Likelihood(**{setting: 1})
    with pytest.raises(TypeError, match="draws"):
        Adversarial(draws=2)
    with pytest.raises(TypeError, match="generator_widths"):
        Residual(generator_widths=(16,))


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(Mixture()) == "Mixture()"
    assert repr(Mixture(boxes=8)) == "Mixture(boxes=8)"
    assert repr(Validation(rows=5, patience=3)) == "Validation(rows=5, patience=3)"
    assert repr(MLP(encoder_widths=[128] * 3)) == "MLP(encoder_widths=[128, 128, 128])"
    assert repr(Own(3)) == "Own(required=3)"


def test_equal_components_have_equal_hashes():
    assert len({Mixture(boxes=8), Mixture().with_params(boxes=8), Mixture()}) == 2


@EACH
def test_clone_of_scikit_learn_is_the_component(kind):
    component = kind()
    assert clone(component) is component
    assert clone([component])[0] is component


def test_clone_of_an_estimator_keeps_its_components():
    est = Roundtrip(noise=Mixture(boxes=8), network="residual")
    again = clone(est)
    assert again is not est
    assert again.get_params() == est.get_params()
    assert again.get_params()["noise__boxes"] == 8


def test_set_params_replaces_a_component_and_changes_none():
    noise = Mixture(boxes=8)
    est = Roundtrip(noise=noise).set_params(noise__gaussians=2, noise__boxes=4)
    assert est.noise == Mixture(gaussians=2, boxes=4)
    assert noise == Mixture(boxes=8)
    with pytest.raises(ValueError, match="Mixture has no setting 'sigma'"):
        est.set_params(noise__sigma=0.1)
    assert est.noise == Mixture(gaussians=2, boxes=4)


def test_set_params_gives_a_shorthand_its_settings():
    est = Roundtrip(objective="adversarial", noise="auto")
    est.set_params(objective__alpha=5.0, noise__sigma=0.3)
    assert est.objective == Adversarial(alpha=5.0)
    assert est.noise.get_params() == {"sigma": 0.3}
    other = Roundtrip().set_params(objective__alpha=5.0, objective="adversarial")
    assert other.objective == Adversarial(alpha=5.0)  # in whichever order


def test_a_grid_search_goes_through_components(mixture, tiny):
    tiny.set_params(latent_dim=1, noise=Mixture(gaussians=2), tol=0.5)
    search = GridSearchCV(tiny, {"noise__boxes": [0, 4]}, cv=2).fit(mixture.X[:100])
    boxes = search.best_params_["noise__boxes"]
    assert search.best_estimator_.noise == Mixture(gaussians=2, boxes=boxes)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
