"""Cdfs, probabilities of intervals, variances and single factors of observation models."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from scipy.stats import t as student_t

from roundtrip.model.columns import Columns, Levels
from roundtrip.model.noise import (
    ConstantGaussian,
    HeteroscedasticGaussian,
    MixedNoise,
    MixtureNoise,
    ObservationModel,
    Observed,
)
from roundtrip.model.noise.intervals import log_gaussian_interval
from roundtrip.model.noise.ordinal import OrdinalNoise

NOISES = {
    "isotropic": lambda: ConstantGaussian(2, sigma=0.3),
    "diagonal": lambda: ConstantGaussian(2, sigma=0.3, per_feature=True),
    "heteroscedastic": lambda: HeteroscedasticGaussian(2),
    "mixture": lambda: MixtureNoise(2, moving=3, fixed=5),
    "no boxes": lambda: MixtureNoise(2, moving=3, fixed=0),
}


def started(noise):
    data = torch.randn(200, 2, generator=torch.Generator().manual_seed(1))
    noise.start(data * torch.tensor([1.0, 0.4]), 0.4)
    if isinstance(noise, MixtureNoise):
        noise.calibrate((1.3, 1.5))
    return noise.requires_grad_(False)


@pytest.fixture(params=NOISES.values(), ids=NOISES.keys())
def noise(request):
    return started(request.param())


def outputs_of(noise, rows=3):
    rng = torch.Generator().manual_seed(0)
    return torch.randn(rows, noise.n_outputs, generator=rng, dtype=torch.float64)


def test_the_cdf_is_the_integral_of_the_density(noise):
    outputs = outputs_of(noise)
    axis = torch.linspace(-60, 5, 40_001, dtype=torch.float64)
    points = axis[:, None].expand(-1, 2)
    for row in outputs:
        density = noise.log_prob(row, points).exp()
        integral = torch.cumulative_trapezoid(density, axis, dim=0)
        found = noise.cdf(row, points[1:]) - noise.cdf(row, points[:1])
        np.testing.assert_allclose(found[::1000], integral[::1000], atol=1e-4)


def test_intervals_are_differences_of_the_cdf(noise):
    outputs = outputs_of(noise)
    low, high = torch.tensor([[-0.3, 0.1]]).double(), torch.tensor([[0.4, torch.inf]]).double()
    found = noise.log_interval(outputs, low, high).exp()
    expected = noise.cdf(outputs, high.clamp_max(1e9)) - noise.cdf(outputs, low)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    whole = torch.full((1, 2), torch.inf, dtype=torch.float64)
    np.testing.assert_allclose(noise.log_interval(outputs, -whole, whole), 0.0, atol=1e-9)


def test_intervals_far_out_keep_their_digits():
    low, high = torch.tensor([30.0]).double(), torch.tensor([31.0]).double()
    np.testing.assert_allclose(log_gaussian_interval(low, high), norm.logsf(30), rtol=1e-12)
    np.testing.assert_allclose(log_gaussian_interval(-high, -low), norm.logsf(30), rtol=1e-12)
    noise = MixtureNoise(1, moving=2, fixed=3)
    outputs = torch.zeros(1, noise.n_outputs, dtype=torch.float64)
    share = float(torch.softmax(noise._split(outputs)[0], dim=-1)[0, 0, -1])
    below, above = (
        noise.log_interval(outputs, torch.tensor([[a]]), torch.tensor([[b]])).item()
        for a, b in ((-2e6, -1e6), (1e6, 2e6))
    )
    expected = math.log(share * (student_t.sf(1e6, df=2) - student_t.sf(2e6, df=2)))
    assert below == pytest.approx(expected, rel=1e-6)
    assert above == pytest.approx(below, rel=1e-9)


def test_empty_intervals_have_no_probability(noise):
    point = torch.full((1, 2), 0.3, dtype=torch.float64)
    assert (noise.log_interval(outputs_of(noise), point, point) == -torch.inf).all()


def test_variances_are_those_of_draws(noise):
    outputs = outputs_of(noise, rows=1)
    if isinstance(noise, MixtureNoise):  # draws of the tail alone decide an empirical variance
        outputs.view(-1)[2:].view(2, -1)[:, 3 + noise.fixed] = -30.0
    draws = noise.sample(outputs.expand(200_000, -1), torch.Generator().manual_seed(0))
    np.testing.assert_allclose(draws.var(dim=0), noise.variance(outputs)[0], rtol=0.02)


def test_the_tail_has_the_variance_of_its_draws():
    noise = MixtureNoise(1, moving=1, fixed=0).requires_grad_(False)
    outputs = torch.zeros(1, noise.n_outputs, dtype=torch.float64)
    outputs[:, 2] = 60.0  # all weight on the tail
    end = 1e-7
    inside, _ = quad(
        lambda log_u: math.exp(log_u) * student_t.ppf(math.exp(log_u), df=2) ** 2,
        math.log(end),
        math.log(0.5),
    )
    at_ends = 2 * end * student_t.ppf(end, df=2) ** 2
    assert float(noise.variance(outputs)) == pytest.approx(2 * inside + at_ends, rel=1e-5)


@pytest.mark.parametrize("place", [0, 1])
def test_a_factor_is_one_feature_of_all(noise, place):
    outputs, x = outputs_of(noise), torch.randn(3, 2, dtype=torch.float64)
    one, needed = Observed(noise).factor(place)
    own, value = outputs[:, needed], x[:, [place]]
    for method in ("log_prob", "cdf"):
        found, whole = getattr(one, method)(own, value), getattr(noise, method)(outputs, x)
        np.testing.assert_allclose(found[:, 0], whole[:, place], rtol=1e-6)
    interval = one.log_interval(own, value - 1, value)
    whole = noise.log_interval(outputs, x - 1, x)
    np.testing.assert_allclose(interval[:, 0], whole[:, place], rtol=1e-6)
    for method in ("mean", "variance"):
        found, whole = getattr(one, method)(own), getattr(noise, method)(outputs)
        np.testing.assert_allclose(found[:, 0], whole[:, place], rtol=1e-6)
    assert one.sample(own, torch.Generator()).shape == (3, 1)


def test_factors_of_mixed_rows():
    colour = Levels(2, ordered=False, reserved=0.1, frequencies=(0.75, 0.25))
    size = Levels(3, ordered=True, reserved=0.05, frequencies=(0.2, 0.5, 0.3))
    columns = Columns((colour, None, size, colour, None), (True,) * 5)
    noise = MixedNoise(columns, MixtureNoise(2, moving=2, fixed=3)).requires_grad_(False)
    outputs = outputs_of(noise, rows=4)
    x = torch.tensor([1.0, 0.3, 2.0, 0.0, -0.2]).double().expand(4, 5)
    whole = noise.log_prob(outputs, x)
    for place in range(5):
        one, needed = noise.factor(place)
        found = one.log_prob(outputs[:, needed], x[:, [place]])
        np.testing.assert_allclose(found[:, 0], whole[:, place], rtol=1e-6)
    with pytest.raises(IndexError, match="no feature 5"):
        noise.factor(5)


def test_the_cdf_of_ordered_levels_adds_their_probabilities():
    size = Levels(3, ordered=True, reserved=0.05, frequencies=(0.2, 0.5, 0.3))
    noise = OrdinalNoise([size, size])
    outputs = outputs_of(noise)
    p = noise.log_probabilities(outputs)[1].exp().cumsum(-1)
    for level in range(3):
        found = noise.cdf(outputs, torch.full((1, 2), float(level)).double())[:, 1]
        np.testing.assert_allclose(found, p[:, level], rtol=1e-6)
    ends = [noise.cdf(outputs, torch.full((1, 2), value).double()) for value in (-0.5, 3.0)]
    assert (ends[0] == 0).all()
    assert (ends[1] == 1).all()


class WithCdf(ObservationModel):
    """Uniform on G(z) ± 1, of which only the cdf is given."""

    features = n_outputs = 2

    def log_prob(self, outputs, x):
        return torch.where((x - outputs).abs() < 1, -math.log(2), -torch.inf)

    def mean(self, outputs):
        return outputs

    def sample(self, outputs, rng):
        return outputs

    def cdf(self, outputs, x):
        return ((x - outputs + 1) / 2).clamp(0, 1)


def test_noise_of_users_needs_no_more_than_a_cdf():
    noise, outputs = WithCdf(), torch.zeros(1, 2).double()
    one, needed = noise.factor(1)
    low, high = torch.tensor([[-torch.inf]]).double(), torch.tensor([[0.5]]).double()
    assert one.log_interval(outputs[:, needed], low, high).exp().item() == pytest.approx(0.75)
    with pytest.raises(NotImplementedError, match=r"WithCdf has no variance\(outputs\), which"):
        noise.variance(outputs)
    with pytest.raises(NotImplementedError, match=r"has no cdf\(outputs, x\), which ranges"):
        ObservationModel.cdf(noise, outputs, outputs)
