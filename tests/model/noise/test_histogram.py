"""Edges of boxes before training."""

import numpy as np

from roundtrip.model.noise.histogram import FEWEST_ROWS, box_edges, likely_edges


def log_likelihood(values, edges):
    """Of a histogram with these edges, whose bins have the mass of the values."""
    edges = np.unique(edges)
    mass, _ = np.histogram(values, edges)
    width = np.diff(edges)
    seen = mass > 0
    return (mass[seen] * np.log(mass[seen] / width[seen])).sum()


def spiky(rows, rng):
    """Mostly zeros spread over a step of 1, rare spikes, and a wide rest."""
    kind = rng.choice(4, size=rows, p=[0.9, 0.04, 0.02, 0.04])
    place = np.array([0.0, 500.0, 90.0, 0.0])[kind]
    return np.where(kind == 3, rng.uniform(0, 1_000, rows), place + rng.uniform(-0.5, 0.5, rows))


def test_spikes_get_bins_of_their_own():
    edges = likely_edges(spiky(20_000, np.random.default_rng(0)), 8)
    for spike in (0.0, 90.0, 500.0):
        inside = np.flatnonzero((edges[:-1] <= spike) & (spike <= edges[1:]))
        assert min(np.diff(edges)[inside]) < 1.6


def test_edges_are_likelier_than_quantiles():
    rng = np.random.default_rng(1)
    for values in (spiky(20_000, rng), rng.standard_cauchy(20_000), rng.exponential(size=20_000)):
        quantiles = np.quantile(values, np.linspace(0, 1, 17))
        assert log_likelihood(values, likely_edges(values, 16)) > log_likelihood(values, quantiles)


def test_edges_cover_all_values_in_order():
    rng = np.random.default_rng(2)
    for values in (spiky(20_000, rng), np.zeros(6_000), np.repeat([1.0, 2.0], 3_000)):
        edges = box_edges(values, 32)
        assert edges.shape == (33,)
        assert (np.diff(edges) >= 0).all()
        assert edges[0] == values.min()
        assert edges[-1] == values.max()


def test_small_tables_have_boxes_between_quantiles():
    values = np.arange(FEWEST_ROWS - 1.0)
    widths = np.diff(box_edges(values, 32))
    assert widths.max() - widths.min() <= 1


def test_continuous_columns_have_boxes_between_quantiles():
    rng = np.random.default_rng(3)
    for values in (rng.normal(size=18_000), rng.exponential(size=18_000), rng.random(18_000)):
        mass, _ = np.histogram(values, box_edges(values, 32))
        assert mass.max() - mass.min() <= 2
    mass, _ = np.histogram(spiky(18_000, rng), box_edges(spiky(18_000, rng), 8))
    assert mass.max() > 10_000  # most rows in one box
