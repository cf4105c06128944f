"""Observation models of categories, ordered levels and rows of several kinds."""

import math

import numpy as np
import pytest
import torch

from roundtrip.model.columns import Columns, Levels
from roundtrip.model.noise import MixedNoise, MixtureNoise
from roundtrip.model.noise.categorical import CategoricalNoise
from roundtrip.model.noise.ordinal import OrdinalNoise

COLOUR = Levels(3, ordered=False, reserved=0.02, frequencies=(0.5, 0.3, 0.2))
FLAG = Levels(2, ordered=False, reserved=0.0, frequencies=(0.9, 0.1))
SIZE = Levels(5, ordered=True, reserved=0.01, frequencies=(0.1, 0.3, 0.4, 0.0, 0.2))
GRADE = Levels(2, ordered=True, reserved=0.05, frequencies=(0.6, 0.4))

# A number, a category, an ordered category, another number, another category and ordered category.
COLUMNS = Columns((None, COLOUR, SIZE, None, FLAG, GRADE), (True, False, True, False, False, False))


def noises():
    return {"categories": CategoricalNoise([COLOUR, FLAG]), "ordered": OrdinalNoise([SIZE, GRADE])}


def outputs_of(noise, rows, scale=2.0, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, noise.n_outputs, generator=rng, dtype=torch.float64)


def mixed():
    noise = MixedNoise(COLUMNS, MixtureNoise(2, moving=3, fixed=4))
    rng = torch.Generator().manual_seed(1)
    noise.start(torch.randn(200, 6, generator=rng), 0.5)
    return noise


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6))
    for place, levels in enumerate(COLUMNS.levels):
        if levels:
            x[:, place] = rng.integers(levels.count, size=n)
    return torch.from_numpy(x)


@pytest.mark.parametrize("name", noises())
def test_probabilities_of_levels_and_of_unknown_ones_sum_to_one(name):
    noise = noises()[name]
    outputs = outputs_of(noise, 7)
    for place, count in enumerate(noise.sizes):
        total = 0
        for level in range(count + 1):
            x = torch.zeros(7, noise.features, dtype=torch.float64)
            x[:, place] = level
            total += noise.log_prob(outputs, x)[:, place].exp()
        torch.testing.assert_close(total, torch.ones_like(total))
        known = noise.log_probabilities(outputs)[place].exp().sum(-1)
        reserved = noise.log_reserved[place].exp()
        torch.testing.assert_close(known, torch.ones_like(known) - reserved)


@pytest.mark.parametrize("name", noises())
def test_levels_are_drawn_with_their_probabilities(name):
    noise = noises()[name]
    n = 40_000
    outputs = outputs_of(noise, 1)
    drawn = noise.sample(outputs.expand(n, -1), torch.Generator().manual_seed(0))
    for place, log_p in enumerate(noise.log_probabilities(outputs)):
        p = (log_p[0] - noise.log_known[place]).exp().numpy()
        share = np.bincount(drawn[:, place].long().numpy(), minlength=len(p)) / n
        assert len(share) == len(p)  # no unknown level is drawn
        assert np.all(np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / n) + 1e-9)


@pytest.mark.parametrize("name", noises())
def test_before_training_levels_have_their_frequencies(name):
    noise = noises()[name]
    if name == "ordered":  # one component with the location and scale of the thresholds
        noise.first_locations.zero_()
    outputs = torch.zeros(1, noise.n_outputs, dtype=torch.float64)
    levels = [COLOUR, FLAG] if name == "categories" else [SIZE, GRADE]
    for each, log_p in zip(levels, noise.log_probabilities(outputs), strict=True):
        p = log_p[0].exp() / (1 - each.reserved)
        tolerance = 1e-5 if name == "categories" else 0.02  # of the smallest scale
        torch.testing.assert_close(
            p, torch.tensor(each.frequencies, dtype=torch.float64), atol=tolerance, rtol=0
        )


def test_the_location_of_an_ordered_category_shifts_its_levels():
    noise = OrdinalNoise([SIZE])
    outputs = torch.zeros(3, noise.n_outputs, dtype=torch.float64)
    outputs[:, 3:6] = torch.tensor([-3.0, 0.0, 3.0])[:, None]
    levels = torch.arange(5)
    means = (noise.log_probabilities(outputs)[0].exp() * levels).sum(-1)
    assert means[0] < means[1] < means[2]
    medians = noise.mean(outputs)[:, 0]
    assert medians[0] < medians[2]


def test_likely_levels_are_the_means_of_categories():
    noise = CategoricalNoise([COLOUR])
    outputs = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
    assert noise.mean(outputs).tolist() == [[0.0], [2.0]]


def test_extreme_thresholds_and_scales_give_finite_gradients():
    noise = OrdinalNoise([SIZE])
    outputs = outputs_of(noise, 50, scale=60.0).float().requires_grad_()
    x = torch.arange(50)[:, None] % 5
    value = noise.log_prob(outputs, x.float())
    assert value.isfinite().all()
    value.sum().backward()
    assert outputs.grad.isfinite().all()


def test_factors_of_a_row_stand_in_the_order_of_its_columns():
    noise = mixed()
    outputs, x = outputs_of(noise, 20, scale=0.5), rows_of(20)
    value = noise.log_prob(outputs, x)
    numbers, categories, ordered = outputs.split(noise._sizes, dim=-1)
    torch.testing.assert_close(value[:, [0, 3]], noise.numbers.log_prob(numbers, x[:, [0, 3]]))
    torch.testing.assert_close(
        value[:, [1, 4]], noise.categories.log_prob(categories, x[:, [1, 4]])
    )
    torch.testing.assert_close(value[:, [2, 5]], noise.ordered.log_prob(ordered, x[:, [2, 5]]))


def test_the_factor_of_a_missing_cell_is_left_out():
    noise = mixed()
    outputs, x = outputs_of(noise, 20, scale=0.5), rows_of(20)
    complete = noise.log_prob(outputs, x)
    for place in range(6):
        holes = x.clone()
        holes[::2, place] = torch.nan
        expected = complete.clone()
        expected[::2, place] = 0
        torch.testing.assert_close(noise.log_prob(outputs, holes), expected)


def test_missing_cells_have_no_gradient_and_spoil_none():
    noise = mixed()
    x = rows_of(30).float()
    x[torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < 0.5] = torch.nan
    outputs = outputs_of(noise, 30, scale=0.5).float().requires_grad_()
    noise.log_prob(outputs, x).sum().backward()
    assert outputs.grad.isfinite().all()
    empty = torch.full_like(x, torch.nan)
    again = outputs.detach().clone().requires_grad_()
    noise.log_prob(again, empty).sum().backward()
    assert float(again.grad.abs().max()) == 0


def test_terms_of_a_row_give_the_same_factors():
    noise = mixed()
    x = rows_of(12)
    x[::3, 2], x[1::3, 0], x[2, 1] = torch.nan, torch.nan, COLOUR.count
    outputs = outputs_of(noise, 12 * 5, scale=0.5).float().double().view(12, 5, -1)
    terms = tuple(term[:, None] for term in noise.row_terms(x))
    torch.testing.assert_close(
        noise.log_prob_of_terms(outputs, terms), noise.log_prob(outputs, x[:, None])
    )
    single = noise.log_prob_of_terms(outputs.float(), terms)
    assert single.dtype == torch.float64
    torch.testing.assert_close(
        single.detach(), noise.log_prob(outputs, x[:, None]).detach(), atol=2e-5, rtol=1e-6
    )


def test_unknown_levels_have_the_reserved_probability():
    noise = mixed()
    outputs, x = outputs_of(noise, 4, scale=0.5), rows_of(4)
    x[:, 1], x[:, 5] = COLOUR.count, GRADE.count
    value = noise.log_prob(outputs, x)
    torch.testing.assert_close(value[:, 1], torch.full((4,), math.log(0.02), dtype=value.dtype))
    torch.testing.assert_close(value[:, 5], torch.full((4,), math.log(0.05), dtype=value.dtype))


def test_samples_have_levels_where_levels_belong():
    noise = mixed()
    drawn = noise.sample(outputs_of(noise, 500).float(), torch.Generator().manual_seed(0))
    for place, levels in enumerate(COLUMNS.levels):
        if levels:
            assert set(drawn[:, place].tolist()) <= set(range(levels.count))
        else:
            assert len(drawn[:, place].unique()) == 500


def test_numbers_start_on_their_observed_cells():
    rng = torch.Generator().manual_seed(0)
    data = torch.randn(4_000, 6, generator=rng)
    complete, holes = mixed(), mixed()
    complete.start(data, 0.5)
    data[torch.rand(4_000, generator=rng) < 0.5, 0] = torch.nan
    holes.start(data, 0.5)
    gap = (complete.numbers.centres - holes.numbers.centres).abs()
    assert gap[:, :-1].max().item() < 0.1  # the last box reaches to the largest value


def test_rows_of_categories_only():
    noise = MixedNoise(Columns((FLAG, COLOUR), (False, False)), None)
    outputs = outputs_of(noise, 3)
    value = noise.log_prob(outputs, torch.tensor([[0.0, 2.0]] * 3))
    torch.testing.assert_close(
        value, CategoricalNoise([FLAG, COLOUR]).log_prob(outputs, torch.tensor([[0.0, 2.0]] * 3))
    )
