"""Noise, networks and priors of the user's own: fitted, normalised, saved and loaded."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from conftest import TINY
from sklearn.base import clone
from torch import nn
from torch.nn.functional import logsigmoid

from roundtrip import (
    LatentDistribution,
    ModelFileError,
    Network,
    Noise,
    ObservationModel,
    Prior,
    Roundtrip,
    RoundtripClassifier,
    RoundtripDetector,
    load,
)

GRID = np.linspace(-20, 20, 401)


class LaplaceModel(ObservationModel):
    def __init__(self, features, floor, width):
        super().__init__()
        self.features = self.n_outputs = features
        self.log_width = nn.Parameter(torch.full((features,), np.log(width)))
        self.register_buffer("floor", floor)

    @property
    def width(self):
        return torch.maximum(self.log_width.exp(), self.floor)

    def log_prob(self, outputs, x):
        return -(x - outputs).abs() / self.width - torch.log(2 * self.width)

    def mean(self, outputs):
        return outputs

    def sample(self, outputs, rng):
        uniform = torch.rand(outputs.shape, generator=rng, dtype=torch.float64) - 0.5
        return outputs - self.width * uniform.sign() * torch.log1p(-2 * uniform.abs())


@dataclass(frozen=True)
class Laplace(Noise):
    width: float = 1.0

    def build(self, features, floor):
        return LaplaceModel(features, floor, self.width)


@dataclass(frozen=True)
class Tanh(Network):
    width: int = 16

    def generator(self, sizes, outputs, *, rng):
        return self._network(sizes.latent_dim + sizes.context_dim, outputs, rng)

    def encoder(self, sizes, outputs, *, rng):
        return self._network(sizes.features + sizes.context_dim, outputs, rng)

    def _network(self, inputs, outputs, rng):
        first, last = nn.Linear(inputs, self.width), nn.Linear(self.width, outputs)
        for layer in (first, last):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5, generator=rng)
            nn.init.zeros_(layer.bias)
        return nn.Sequential(first, nn.Tanh(), last)


class LogisticDistribution(LatentDistribution):
    def __init__(self, latent_dim):
        super().__init__(latent_dim)
        self.log_scale = nn.Parameter(torch.zeros(latent_dim, dtype=torch.float64))

    def log_prob(self, z):
        t = z.double() / self.log_scale.exp()
        return (logsigmoid(t) + logsigmoid(-t) - self.log_scale).sum(-1)

    def sample(self, n_samples, rng):
        draws = torch.from_numpy(rng.logistic(size=(n_samples, self.latent_dim)))
        return draws * self.log_scale.detach().exp().cpu()


@dataclass(frozen=True)
class Logistic(Prior):
    def build(self, latent_dim):
        return LogisticDistribution(latent_dim)


OWN = {
    "noise": {"noise": Laplace(width=1.0)},
    "network": {"network": Tanh()},
    "prior": {"prior": Logistic()},
    "all": {"noise": Laplace(), "network": Tanh(8), "prior": Logistic()},
}
each = pytest.mark.parametrize("name", OWN)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return rng.choice([-3.0, 2.0], size=(300, 1)) + rng.laplace(size=(300, 1))


@pytest.fixture(scope="module")
def fits(table):
    return {
        name: Roundtrip(**(TINY | own), latent_dim=1)
        .set_params(objective__min_steps_per_epoch=50)
        .fit(table)
        for name, own in OWN.items()
    }


def classes(name):
    return [type(component) for component in OWN[name].values()]


@each
def test_it_is_used_and_trained(fits, name):
    est = fits[name]
    for parameter, component in OWN[name].items():
        assert getattr(est.options_, parameter) == component
    if "noise" in OWN[name]:
        assert isinstance(est.model_.noise, LaplaceModel)
        assert (est.model_.noise.log_width != np.log(OWN[name]["noise"].width)).all()
    if "network" in OWN[name]:
        assert isinstance(est.model_.generator[1], nn.Tanh)
    if "prior" in OWN[name]:
        assert isinstance(est.model_.prior, LogisticDistribution)
        assert (est.model_.prior.log_scale != 0).all()


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")  # of points far from all rows
@each
def test_the_density_integrates_to_one_and_samples_follow_it(fits, name):
    est = fits[name]
    density = np.exp(est.density(GRID[:, None]).log_density)
    step = GRID[1] - GRID[0]
    assert density.sum() * step == pytest.approx(1, abs=0.01)
    draws = est.sample(20_000, random_state=0)[:, 0]
    below = (draws[:, None] < GRID[::40] + step / 2).mean(axis=0)
    np.testing.assert_allclose(below, np.cumsum(density)[::40] * step, atol=0.02)


@each
def test_saved_and_loaded_it_scores_alike(fits, table, name, tmp_path):
    est, path = fits[name], tmp_path / "model.rt"
    est.save(path)
    again = load(path, components=classes(name))
    np.testing.assert_array_equal(again.score_samples(table[:20]), est.score_samples(table[:20]))
    np.testing.assert_array_equal(again.sample(5, random_state=1), est.sample(5, random_state=1))
    assert again.get_params() == est.get_params()
    assert again.options_ == est.options_
    for missing in classes(name):
        others = [each for each in classes(name) if each is not missing]
        advice = rf"load\(path, components=\[{missing.__name__}\]\)"
        with pytest.raises(ModelFileError, match=rf"model\.rt: .*{advice}"):
            load(path, components=others)


def test_only_classes_of_components_are_taken(tmp_path):
    for wrong in (Laplace(), "Laplace", dict):
        with pytest.raises(TypeError, match="components must be a list of component classes"):
            load(tmp_path / "model.rt", components=[wrong])


def test_a_detector_scores_by_own_noise(table, tmp_path):
    density = Roundtrip(**(TINY | OWN["noise"]), latent_dim=1)
    with pytest.raises(ValueError, match=r"isotropic noise, not noise=Laplace\(width=1.0\)"):
        RoundtripDetector(estimator=density, sigma=2.0).fit(table)
    detector = RoundtripDetector(estimator=density, sigma=None, trim=False, random_state=0)
    detector.fit(table[:100])
    assert detector.blurred_ is None
    assert isinstance(detector.estimator_.model_.noise, LaplaceModel)
    assert detector.predict([[40.0]]) == -1
    detector.save(tmp_path / "detector.rt")
    again = load(tmp_path / "detector.rt", components=[Laplace])
    np.testing.assert_array_equal(again.score_samples(table[:9]), detector.score_samples(table[:9]))
    assert again.estimator.get_params() == detector.estimator.get_params()
    with pytest.raises(ModelFileError, match="Laplace"):
        load(tmp_path / "detector.rt")


def test_a_classifier_takes_own_components(table, tmp_path):
    clf = RoundtripClassifier(Roundtrip(**(TINY | OWN["all"]), latent_dim=1))
    clf.fit(table, table[:, 0] > 0)
    clf.save(tmp_path / "classifier.rt")
    again = load(tmp_path / "classifier.rt", components=classes("all"))
    np.testing.assert_array_equal(again.predict_proba(table[:9]), clf.predict_proba(table[:9]))


def test_settings_of_own_components_are_parameters():
    est = clone(Roundtrip(noise=Laplace(width=2.0))).set_params(noise__width=3.0)
    assert est.noise == Laplace(width=3.0)
    assert "noise=Laplace(width=3.0)" in repr(est)
    with pytest.raises(ValueError, match="Laplace has no setting 'sigma'; it has width"):
        est.set_params(noise__sigma=1.0)


@pytest.mark.parametrize("base", [Noise, Network, Prior, ObservationModel, LatentDistribution])
def test_a_class_that_lacks_a_method_is_refused(base):
    with pytest.raises(TypeError, match="abstract"):
        type("Unfinished", (base,), {})()
