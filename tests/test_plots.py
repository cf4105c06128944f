"""Pictures: what is drawn is what the estimators say."""

from functools import partial

import matplotlib.style
import numpy as np
import pandas as pd
import pytest
from conftest import TINY
from fitted_oracles import GaussianTable, MixedTable
from matplotlib.figure import Figure

from roundtrip import Roundtrip
from roundtrip.density import prepared
from roundtrip.density.pair_marginals import column_masses
from roundtrip.density.part_encoder import fit_part_encoder
from roundtrip.plots import conditional, image_grid, pair_marginals
from roundtrip.plots.pairs import _heights


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=80))


@pytest.mark.parametrize("channels", [1, 3])
def test_bytes_are_drawn_as_bytes(channels):
    """Colour bytes that become floats on the way would all be drawn white."""
    images = np.full((1, 8, 8, channels), 49, dtype=np.uint8)
    (axes,) = image_grid(images, [""], [""]).axes
    drawn = axes.images[0].to_rgba(axes.images[0].get_array(), bytes=True)
    np.testing.assert_allclose(drawn[..., :3], 49, atol=1)  # a step of the grey scale


@pytest.fixture(scope="module")
def gaussian():
    return GaussianTable(2, 3)


@pytest.fixture(scope="module")
def mixed():
    return MixedTable()


def test_conditional_densities_are_those_of_the_closed_form(gaussian):
    rows = gaussian.table(3, seed=4)
    p = gaussian.est.conditional(rows, "a")
    (ax,) = conditional(p, 1).axes
    band, curve = (patch.get_data() for patch in ax.patches)
    law = gaussian.given("a", rows.iloc[1][["b", "c"]].to_dict())
    expected = np.diff(law.cdf(curve.edges)) / np.diff(curve.edges)
    assert np.abs(curve.values - expected).max() < 0.05 * expected.max()
    assert ((band.baseline <= curve.values) & (curve.values <= band.values)).all()
    assert np.mean((band.baseline <= expected) & (expected <= band.values)) > 0.7
    lines = [line.get_xdata()[0] for line in ax.lines]
    np.testing.assert_allclose(lines, p.taken(1).quantile([0.05, 0.5, 0.95]).iloc[0])
    assert "row 1" in ax.get_title()


def test_values_of_counts_are_drawn_with_their_probabilities(mixed):
    p = mixed.est.conditional(mixed.learned.head(2), "visits")
    (ax,) = conditional(p).axes
    bars = ax.patches[0].get_data()
    np.testing.assert_allclose(np.diff(bars.edges), 1)
    counts = np.rint(bars.edges[:-1] + 0.5).astype(int)
    cdf = p.taken(0).cdf(np.append(counts[0] - 1, counts)[None]).to_numpy()[0]
    np.testing.assert_allclose(bars.values, np.diff(cdf), atol=1e-9)
    assert ax.get_ylabel() == "probability"


def test_levels_are_bars(mixed):
    for name in ("colour", "size"):
        p = mixed.est.conditional(mixed.learned.head(3), name)
        (ax,) = conditional(p, 2).axes
        names = [tick.get_text() for tick in ax.get_yticklabels()]
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(widths, p.probabilities().iloc[2][names])
    assert names == ["S", "M", "L"]  # ordered levels keep their order


def test_dates_and_axes_of_ones_own(mixed):
    ax = Figure().subplots()
    figure = conditional(mixed.est.conditional(mixed.learned.head(1), "day"), ax=ax)
    assert figure is ax.figure
    figure.draw_without_rendering()
    assert any("2020" in text for text in (ax.xaxis.get_offset_text().get_text(),))
    assert any("2020-" in text.get_text() for text in ax.texts)


def test_quantiles_at_the_same_place_share_a_label(mixed):
    p = mixed.est.conditional(mixed.learned.head(1), "visits")
    (ax,) = conditional(p, quantiles=(0.5, 0.5001)).axes
    assert [text.get_text().strip()[:4] for text in ax.texts] == ["50 %"]


@pytest.mark.parametrize("row", [-1, 3, 0.5])
def test_rows_that_are_not_there_are_refused(gaussian, row):
    p = gaussian.est.conditional(gaussian.table(3), "a")
    with pytest.raises((ValueError, TypeError), match="row"):
        conditional(p, row)


def test_masses_of_pairs_are_those_of_the_density(gaussian):
    rows = gaussian.table(2_000, seed=2)
    first, second = column_masses(gaussian.est.fitted_, rows.to_numpy(), [0, 2])
    p = second.with_other(first)
    assert p.shape == (len(second.masses), len(first.masses))
    assert p.sum() == pytest.approx(1, abs=0.02)
    np.testing.assert_allclose(
        p.sum(axis=0), first.masses * p.sum() / first.masses.sum(), atol=2e-3
    )
    x, y = np.digitize(rows["a"], first.edges) - 1, np.digitize(rows["c"], second.edges) - 1
    inside = (x >= 0) & (x < p.shape[1]) & (y >= 0) & (y < p.shape[0])
    heights = _heights(p, p / np.outer(np.diff(second.edges), np.diff(first.edges)))
    areas = np.outer(np.diff(second.edges), np.diff(first.edges))
    found = (p / areas)[y[inside], x[inside]]
    # The regions hold 95, 80 and 50 % of rows that follow the density.
    shares = [(found >= height).sum() / len(rows) for height in heights]
    np.testing.assert_allclose(shares, [0.95, 0.8, 0.5], atol=0.04)


def test_masses_of_levels_are_those_of_quadrature(mixed):
    values = mixed.est.schema_.checked_values(mixed.est, mixed.learned)
    place = list(mixed.learned).index("colour")
    (colours,) = column_masses(mixed.est.fitted_, values, [place])
    names, expected = mixed.law("colour")
    levels = list(mixed.est.columns_["colour"].levels)
    assert list(names) == levels
    np.testing.assert_allclose(colours.masses, expected, atol=0.02)


def test_every_pair_of_kinds_is_drawn(mixed):
    table = mixed.learned.astype({"visits": float})
    table.loc[::9, "visits"] = None
    figure = pair_marginals(mixed.est, table, ["height", "visits", "colour", "size", "day"])
    assert len(figure.axes) == 15
    figure.draw_without_rendering()
    labels = {ax.get_xlabel() for ax in figure.axes} - {""}
    assert labels == {"height", "visits", "colour", "size", "day"}


def test_columns_are_the_first_five_if_not_named():
    X = np.random.default_rng(0).normal(size=(80, 7))
    est = Roundtrip(**TINY).fit(X)
    assert len(pair_marginals(est, X).axes) == 15
    for columns in ([0], [0, 0], [0, 9]):
        with pytest.raises(ValueError, match="columns must name at least two"):
            pair_marginals(est, X, columns)
    images = np.random.default_rng(0).random((20, 4, 4, 1))
    est = Roundtrip(**TINY).fit(images)
    with pytest.raises(ValueError, match="pair_marginals is for densities of tables"):
        pair_marginals(est, images)


def test_pictures_follow_a_dark_theme(gaussian):
    """Colours of our own must be visible on black and on white."""
    p = gaussian.est.conditional(gaussian.table(1), "a")
    with matplotlib.style.context("dark_background"):
        (ax,) = conditional(p).axes
        backgrounds = {matplotlib.colors.to_hex(ax.get_facecolor()), "#ffffff"}
    own = [line.get_color() for line in ax.lines] + [text.get_color() for text in ax.texts]
    for colour in own:
        grey = np.dot(matplotlib.colors.to_rgb(colour), [0.299, 0.587, 0.114])
        assert 0.2 < grey < 0.8
    assert backgrounds == {"#000000", "#ffffff"}


def test_a_column_without_cells_is_refused(gaussian):
    rows = gaussian.table(5).assign(a=np.nan)
    with pytest.raises(ValueError, match="column 'a' has no observed cell"):
        pair_marginals(gaussian.est, pd.DataFrame(rows), ["a", "b"])
