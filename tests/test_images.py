"""Images: layouts, networks, class-conditional fits, classification."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from roundtrip import Roundtrip, RoundtripClassifier, load
from roundtrip.cli import app
from roundtrip.data.images import ImageLayout
from roundtrip.model.networks import ConvDiscriminator, ConvEncoder, ConvGenerator
from roundtrip.plots import image_grid
from roundtrip.reproduce.generation import generate_images
from roundtrip.settings import resolved

TINY = {"max_epochs": 1, "min_steps_per_epoch": 5, "batch_size": 32, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[..., None]
    return train_test_split(images, data.target, test_size=500, random_state=0)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (8, 12, 4)])
def test_networks_of_table_s3_have_its_shapes(shape):
    generator = torch.Generator().manual_seed(0)
    features = int(np.prod(shape))
    G = ConvGenerator(100, shape, context_dim=10, norm=True, generator=generator)
    H = ConvEncoder(shape, 100, generator=generator)
    D = ConvDiscriminator(shape, context_dim=10, generator=generator)
    codes = torch.randn(3, 110, generator=generator)
    images = G(codes)
    assert images.shape == (3, features)
    assert images.min() >= 0
    assert images.max() <= 1
    assert H(images).shape == (3, 100)
    rows = torch.cat([images, codes[:, 100:]], dim=1)
    assert D(rows).shape == (3, 1)
    side_by_side = D(torch.stack([rows, rows], dim=1))
    torch.testing.assert_close(side_by_side[:, 0], D(rows))
    assert G.second.out_features == shape[0] // 4 * (shape[1] // 4) * 128
    # The label is joined at each stage.
    assert [G.first.in_features, G.second.in_features] == [110, 1034]
    assert [G.third.in_channels, G.last.in_channels] == [138, 74]
    assert [H.first.out_channels, H.second.out_channels, H.third.out_features] == [64, 64, 1024]
    assert [D.first.out_channels, D.second.out_channels, D.third.out_features] == [32, 64, 1024]


def test_context_changes_what_is_generated():
    generator = torch.Generator().manual_seed(0)
    G = ConvGenerator(4, (8, 8, 1), context_dim=2, hidden=16, generator=generator)
    z = torch.randn(1, 4, generator=generator)
    first, second = (G(torch.cat([z, torch.eye(2)[[k]]], dim=1)) for k in (0, 1))
    assert (first - second).abs().max() > 1e-3


@pytest.mark.parametrize("channels_first", [False, True])
@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_images_come_back_as_they_came(channels_first, kind):
    rng = np.random.default_rng(0)
    X = rng.random((5, 8, 12, 3))
    if kind == "bytes":
        X = (255 * X).astype(np.uint8)
    if channels_first:
        X = np.moveaxis(X, 3, 1)
    layout = ImageLayout.of(X)
    rows = layout.flatten(X)
    assert rows.shape == (5, 288)
    np.testing.assert_array_equal(layout.unflatten(rows.astype(float)), X)


@pytest.mark.parametrize(
    ("X", "word"),
    [
        (np.zeros((2, 8, 8, 2)), "channels"),
        (np.zeros((2, 9, 8, 1)), "divide by 4"),
        (np.full((2, 8, 8, 1), 7.0), "between 0 and 1"),
        (np.full((2, 8, 8, 1), "a"), "numbers"),
        (np.full((2, 8, 8, 1), 256), "between 0 and 255"),
        (np.full((2, 8, 8, 1), -1), "between 0 and 255"),
        (np.ones((2, 8, 8, 1), dtype=int), "none of these exceeds 1"),
        (np.full((2, 8, 8, 1), 16, dtype=np.uint8), "none of these exceeds 16"),
    ],
)
def test_bad_images_are_named(X, word):
    with pytest.raises(ValueError, match=word):
        Roundtrip(**TINY).fit(X)


def test_units_are_not_mixed_up(digits):
    X = digits[0][:50]
    whole = np.rint(X * 255).astype(np.uint8)
    with pytest.raises(ValueError, match="multiply them by 255"):
        Roundtrip(**TINY).fit(whole).score_samples(X)
    with pytest.raises(ValueError, match="these reach 255"):
        Roundtrip(**TINY).fit(X).score_samples(whole)


def test_channels_first_and_last_give_the_same_fit(digits):
    X = np.concatenate([digits[0][start : start + 100] for start in (0, 100, 200)], axis=3)
    last = Roundtrip(**TINY).fit(X)
    first = Roundtrip(**TINY).fit(np.moveaxis(X, 3, 1))
    np.testing.assert_allclose(
        last.score_samples(X[:5]), first.score_samples(np.moveaxis(X[:5], 3, 1))
    )
    assert first.sample(2).shape == (2, 3, 8, 8)
    assert last.sample(2).shape == (2, 8, 8, 3)


def test_bytes_have_the_density_of_bytes(digits):
    """p of a value between 0 and 255 is p of the same between 0 and 1, divided by 255 a pixel."""
    X = digits[0][:100]
    whole = np.rint(X * 255).astype(np.uint8)
    unit = Roundtrip(**TINY).fit(whole / 255.0)
    byte = Roundtrip(**TINY).fit(whole)
    shift = 64 * np.log(255)
    np.testing.assert_allclose(
        byte.score_samples(whole[:5]) + shift, unit.score_samples(whole[:5] / 255.0), rtol=1e-6
    )
    assert byte.sample(3).dtype == np.uint8


def test_paper_images_trains_scores_and_is_kept(digits, tmp_path):
    X, _, y, _ = digits
    est = Roundtrip.paper_images(**TINY).fit(X[:200], context=y[:200])
    assert est.latent_dim_ == 100
    assert not est.model_.encodes_context
    result = est.density(X[:2], context=y[:2], method="importance", n_samples=50)
    assert np.isfinite(result.log_density).all()
    laplace = est.density(X[:2], context=y[:2], method="laplace")
    assert np.isfinite(laplace.log_density).all()
    est.save(tmp_path / "model.rt")
    again = load(tmp_path / "model.rt")
    np.testing.assert_array_equal(
        again.sample(2, random_state=0, context=3), est.sample(2, random_state=0, context=3)
    )
    with pytest.raises(ValueError, match="fitted on images of shape"):
        again.score_samples(np.zeros((1, 12, 8, 1)), context=3)


def test_convolutions_can_be_trained_by_likelihood(digits):
    X, _, y, _ = digits
    est = Roundtrip(network="conv", **TINY).fit(X[:100], context=y[:100])
    assert isinstance(est.model_.generator, ConvGenerator)
    assert np.isfinite(est.score_samples(X[:2], context=y[:2])).all()


def test_noise_that_is_asked_for_is_learnt(digits):
    fixed = Roundtrip(**TINY).fit(digits[0][:100])
    assert fixed.sigma_ == pytest.approx(0.25)
    learnt = Roundtrip(noise="diagonal", **TINY).fit(digits[0][:100])
    assert len(np.unique(learnt.sigma_)) > 1
    with pytest.raises(ValueError, match="one number a pixel"):
        Roundtrip(network="conv", noise="mixture", **TINY).fit(digits[0][:100])


def test_large_images_are_learnt_at_a_lower_rate(digits):
    """At the rate of small ones the codes of 24 x 24 pixels in colour fly apart."""
    rates = [
        resolved(Roundtrip().get_params(), pixels=pixels)["learning_rate"]
        for pixels in (64, 784, 3136)
    ]
    assert rates[0] == rates[1] == pytest.approx(16 * rates[2])
    assert resolved(Roundtrip(learning_rate=0.1).get_params(), pixels=3136)["learning_rate"] == 0.1
    X = np.tile(digits[0][:400], (1, 3, 3, 3))
    settings = TINY | {"min_steps_per_epoch": 40}
    low, high = (
        Roundtrip(**settings, learning_rate=rate).fit(X).history_["validation_log_likelihood"][-1]
        for rate in ("auto", rates[0])
    )
    assert low > high + 1000


def test_tables_need_table_networks():
    with pytest.raises(ValueError, match="conv"):
        Roundtrip(network="conv", **TINY).fit(np.zeros((20, 4)))


def test_digits_are_classified_by_their_density(digits):
    train, test, train_labels, test_labels = digits
    clf = RoundtripClassifier(random_state=0).fit(train, train_labels, max_time=25)
    assert clf.score(test[:250], test_labels[:250]) >= 0.93
    generated = clf.estimator_.sample(20, random_state=0, context=list(range(10)) * 2)
    assert generated.shape == (20, 8, 8, 1)


def test_generate_sorts_images_by_their_density(digits, tmp_path):
    X, _, y, _ = digits
    est = Roundtrip(**TINY).fit(X[:200], context=y[:200])
    est.save(tmp_path / "model.rt")
    table, picture = tmp_path / "scores.csv", tmp_path / "grid.png"
    with pytest.raises(SystemExit) as exit_info:
        app(
            [
                *("generate", str(tmp_path / "model.rt"), "--per-class", "3", "--seed", "1"),
                *("-o", str(picture), "--table", str(table), "--quiet"),
            ]
        )
    assert not exit_info.value.code
    assert picture.read_bytes().startswith(b"\x89PNG")
    frame = pd.read_csv(table)
    assert frame["label"].tolist() == [label for label in range(10) for _ in range(3)]
    generated = generate_images(est, 3, labels=[4, 7], random_state=1)
    again = est.score_samples(generated.images, context=generated.labels)
    np.testing.assert_allclose(again, generated.density.log_density, atol=1e-9)
    for _, group in frame.groupby("label"):
        assert (group["log_density"].diff().dropna() <= 0).all()
    with pytest.raises(ValueError, match="no classes"):
        generate_images(Roundtrip(**TINY).fit(X[:50]), 2)


@pytest.mark.parametrize("channels", [1, 3])
def test_bytes_are_drawn_as_bytes(channels):
    """Colour bytes that become floats on the way would all be drawn white."""
    images = np.full((1, 8, 8, channels), 49, dtype=np.uint8)
    (axes,) = image_grid(images, [""], [""]).axes
    drawn = axes.images[0].to_rgba(axes.images[0].get_array(), bytes=True)
    np.testing.assert_allclose(drawn[..., :3], 49, atol=1)  # a step of the grey scale
