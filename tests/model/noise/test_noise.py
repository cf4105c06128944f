"""What every observation model must do."""

import math

import numpy as np
import pytest
import torch

from roundtrip.model.noise import (
    ConstantGaussian,
    HeteroscedasticGaussian,
    MixtureNoise,
    Unseen,
)

FEATURES = 2
NOISES = {
    "isotropic": lambda: ConstantGaussian(FEATURES, sigma=0.3),
    "diagonal": lambda: ConstantGaussian(FEATURES, sigma=0.3, per_feature=True),
    "heteroscedastic": lambda: HeteroscedasticGaussian(FEATURES),
    "mixture": lambda: MixtureNoise(FEATURES, moving=3, fixed=5),
    "no boxes": lambda: MixtureNoise(FEATURES, moving=3, fixed=0),
    "calibrated mixture": lambda: calibrated_mixture(),
}


def calibrated_mixture():
    noise = MixtureNoise(FEATURES, moving=3, fixed=5)
    noise.calibrate((1.3, 1.5))
    return noise


@pytest.fixture(params=NOISES.values(), ids=NOISES.keys())
def noise(request):
    model = request.param()
    data = torch.randn(200, FEATURES, generator=torch.Generator().manual_seed(1))
    model.start(data, 0.4)
    return model.requires_grad_(False)


@pytest.fixture
def outputs(noise):
    rng = torch.Generator().manual_seed(0)
    return torch.randn(3, noise.n_outputs, generator=rng, dtype=torch.float64)


def test_every_feature_integrates_to_one(noise, outputs):
    axis = torch.linspace(-40, 40, 40_001, dtype=torch.float64)
    for row in outputs:
        density = noise.log_prob(row, axis[:, None].expand(-1, FEATURES)).exp()
        np.testing.assert_allclose(torch.trapezoid(density, axis, dim=0), 1.0, atol=1e-4)


def test_mean_is_the_mean_of_the_density(noise, outputs):
    axis = torch.linspace(-40, 40, 40_001, dtype=torch.float64)
    for row in outputs:
        density = noise.log_prob(row, axis[:, None].expand(-1, FEATURES)).exp()
        mean = torch.trapezoid(density * axis[:, None], axis, dim=0)
        np.testing.assert_allclose(noise.mean(row), mean, atol=1e-3)


def test_samples_follow_the_density(noise, outputs):
    """The share of draws below a point is the integral of the density up to it."""
    n = 40_000
    draws = noise.sample(outputs[:1].expand(n, -1), torch.Generator().manual_seed(2))
    assert draws.shape == (n, FEATURES)
    axis = torch.linspace(-40, 40, 40_001, dtype=torch.float64)
    density = noise.log_prob(outputs[0], axis[:, None].expand(-1, FEATURES)).exp()
    cumulative = torch.cumulative_trapezoid(density, axis, dim=0)
    for level in (0.1, 0.5, 0.9):
        for feature in range(FEATURES):
            place = axis[int(torch.searchsorted(cumulative[:, feature].contiguous(), level))]
            share = (draws[:, feature] < place).double().mean()
            assert abs(share - level) < 5 * np.sqrt(level * (1 - level) / n)


def test_leading_axes_broadcast(noise, outputs):
    x = torch.zeros(3, FEATURES, dtype=torch.float64)
    both = noise.log_prob(outputs.expand(4, 3, -1), x)
    assert both.shape == (4, 3, FEATURES)
    torch.testing.assert_close(both[1], noise.log_prob(outputs, x))


def test_far_away_densities_are_finite(noise, outputs):
    x = torch.tensor([[1e6, -1e6]], dtype=torch.float64)
    assert noise.log_prob(outputs, x).isfinite().all()


def test_no_width_goes_below_the_floor():
    """However hard training pulls, the density of a column stays bounded."""
    floor = torch.tensor([0.1, 0.2])
    for noise in (
        HeteroscedasticGaussian(FEATURES, floor=floor),
        MixtureNoise(FEATURES, moving=2, fixed=2, floor=floor),
        ConstantGaussian(FEATURES, sigma=1e-6, per_feature=True, floor=floor),
    ):
        outputs = torch.full((1, noise.n_outputs), -50.0)
        outputs[:, :FEATURES] = 0.0
        if isinstance(noise, ConstantGaussian):
            outputs = torch.zeros(1, FEATURES)
        x = torch.zeros(1, FEATURES)
        highest = -torch.log(floor) + 0.7  # a box of half-width w is 1 / 2w high
        assert (noise.log_prob(outputs, x) <= highest).all()


@pytest.mark.parametrize("boxes", [4, 0])
def test_derivatives_of_the_mixture_by_hand(boxes):
    noise = MixtureNoise(FEATURES, moving=3, fixed=boxes).double()
    rng = torch.Generator().manual_seed(0)
    noise.start(torch.randn(50, FEATURES, generator=rng, dtype=torch.float64), 0.7)
    outputs = torch.randn(3, 5, noise.n_outputs, generator=rng, dtype=torch.float64)
    rows = torch.randn(5, FEATURES, generator=rng, dtype=torch.float64)
    learnt = [outputs.requires_grad_(), *noise.parameters()]
    value = noise.log_prob(outputs, rows)
    by_hand = torch.autograd.grad(value.sin().sum(), learnt)
    # A gradient in x is asked for, which automatic differentiation gives.
    plain = noise.log_prob(outputs, rows.clone().requires_grad_())
    torch.testing.assert_close(value, plain)
    torch.testing.assert_close(by_hand, torch.autograd.grad(plain.sin().sum(), learnt))


def plain_log_density(noise, outputs, x):
    """The definition of the mixture, in float64."""
    rest = outputs[..., FEATURES:].unflatten(-1, (FEATURES, -1))
    logits, shift, raw = rest.split(
        [noise.moving + noise.fixed + 1, noise.moving, noise.moving], -1
    )
    mean = outputs[..., :FEATURES, None] + noise.first_width * (shift + noise.offsets)
    sigma = noise.floor + torch.nn.functional.softplus(raw + noise.first_raw)
    centre, half, soft = noise.centres, *noise._box_shape()
    x = x[..., None]
    tail = torch.distributions.StudentT(2.0, noise.tail_centre, noise.tail_scale)
    box = torch.sigmoid((x - centre + half) / soft) - torch.sigmoid((x - centre - half) / soft)
    gaussian = torch.distributions.Normal(mean, sigma).log_prob(x).exp()
    fixed = torch.cat([box / (2 * half), tail.log_prob(x).exp()], dim=-1)
    weights = torch.softmax(logits + noise.first_logits, dim=-1)
    every = torch.cat([gaussian, fixed.expand(*gaussian.shape[:-1], -1)], dim=-1)
    return (weights * every).sum(-1).log()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_mixture_is_what_its_definition_says(dtype):
    noise = MixtureNoise(FEATURES, moving=3, fixed=8)
    rng = torch.Generator().manual_seed(0)
    noise.start(torch.randn(50, FEATURES, generator=rng, dtype=torch.float64), 0.7)
    outputs = torch.randn(3, 5, noise.n_outputs, generator=rng, dtype=torch.float64)
    rows = 2 * torch.randn(5, FEATURES, generator=rng, dtype=torch.float64)
    value = noise.log_prob(outputs.to(dtype), rows.to(dtype))
    assert value.dtype == dtype
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {}
    torch.testing.assert_close(
        value.double(), plain_log_density(noise.double(), outputs, rows), **tolerance
    )


def test_a_row_does_not_depend_on_far_rows_beside_it():
    noise = MixtureNoise(FEATURES, moving=3, fixed=4)
    rng = torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 3, noise.n_outputs, generator=rng)
    outputs[..., FEATURES + 7] = -90.0  # of the tail of the first feature
    outputs.requires_grad_()
    rows = torch.tensor([[0.3, -0.2], [1e9, 0.1], [0.0, 1.0]])
    together = noise.log_prob(outputs, rows)
    alone = torch.stack([noise.log_prob(outputs[:, [0]], rows[[0]])[:, 0]])[0]
    torch.testing.assert_close(together[:, 0], alone, rtol=0, atol=0)
    together.sum().backward()
    assert outputs.grad.isfinite().all()


@pytest.mark.parametrize("x", [1e3, 1e9, 1e14, 1e30])
def test_log_densities_far_from_the_data_are_those_of_the_tail(x):
    noise = MixtureNoise(1, moving=2, fixed=4)
    rows = torch.tensor([[x]])
    for weight in (0.0, -50.0, -200.0):  # of the tail: the exponential of the last is zero
        outputs = torch.zeros(1, noise.n_outputs)
        outputs[:, 7] = weight
        exact = (
            math.log(2 + x**2) * -1.5
            + torch.log_softmax(noise.first_logits.double() + outputs[0, 1:8], 0)[-1]
        )
        torch.testing.assert_close(
            noise.log_prob(outputs, rows).double()[0, 0], exact, rtol=1e-5, atol=0
        )


@pytest.mark.parametrize("x", [0.0, 0.7, 8.0, 50.0, 3e3, 1e6])
def test_terms_of_a_row_give_the_same_density(noise, outputs, x):
    """Scoring computes what depends on x alone once per row, and weights in float32."""
    outputs = torch.cat([outputs, 30 * outputs]).float()  # also weights that are nearly 0
    rows = torch.tensor([[x, -x]], dtype=torch.float64).expand(len(outputs), -1)
    exact = noise.log_prob(outputs.double(), rows)
    fast = noise.log_prob_of_terms(outputs, noise.row_terms(rows))
    assert fast.dtype == torch.float64
    torch.testing.assert_close(fast, exact, rtol=2e-6, atol=2e-5)


def test_terms_of_rows_broadcast_with_draws(noise, outputs):
    rows = torch.randn(4, FEATURES, generator=torch.Generator().manual_seed(3)).double() * 9
    terms = tuple(term[:, None] for term in noise.row_terms(rows))
    both = noise.log_prob_of_terms(outputs, terms)
    torch.testing.assert_close(both, noise.log_prob(outputs, rows[:, None]), rtol=1e-6, atol=1e-6)


def test_narrow_gaussians_far_away_have_no_gradient():
    """Rows of the tail say nothing about the width of a Gaussian 1e12 widths away."""
    noise = MixtureNoise(1, moving=2, fixed=2, floor=1e-12)
    outputs = torch.zeros(1, noise.n_outputs)
    outputs[:, -2:] = -50.0  # as narrow as the floor allows
    outputs.requires_grad_()
    noise.log_prob(outputs, torch.tensor([[70.0]])).sum().backward()
    assert outputs.grad.isfinite().all()
    assert (outputs.grad[:, -4:] == 0).all()
    assert outputs.grad[:, 5] > 0.9  # more weight for the tail


def test_narrow_boxes_move_in_units_of_their_width():
    noise = MixtureNoise(1, moving=1, fixed=4, floor=1e-12)
    narrow, wide = torch.linspace(-1e-9, 1e-9, 80), torch.linspace(-5.0, 5.0, 20)
    noise.start(torch.cat([narrow, wide]).double()[:, None], 1.0)
    before = noise.centres.detach().clone()
    with torch.no_grad():
        noise.shifts += 0.008  # a step of training
    moved = (noise.centres - before).abs() / noise._box_shape()[0]
    assert (moved < 0.2).all()
    assert noise.shift_units.max() == 1.0


def test_terms_leave_unseen_features_out(noise, outputs):
    unseen = Unseen(noise, torch.tensor([True, False]))
    rows = torch.tensor([[0.3, -0.2]], dtype=torch.float64).expand(len(outputs), -1)
    values = unseen.log_prob_of_terms(outputs, unseen.row_terms(rows))
    assert (values[:, 0] == 0).all()
    torch.testing.assert_close(values, unseen.log_prob(outputs, rows), rtol=1e-6, atol=1e-6)
