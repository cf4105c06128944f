"""Images: class-conditional fits, classification, generation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from roundtrip import Likelihood, Roundtrip, RoundtripClassifier, load
from roundtrip.cli import app
from roundtrip.model.networks import ConvGenerator
from roundtrip.options import fit_options
from roundtrip.reproduce.generation import generate_images

TINY = {
    "max_epochs": 1,
    "objective": Likelihood(min_steps_per_epoch=5, batch_size=32),
    "random_state": 0,
}
TINY_PAPER = {
    "max_epochs": 1,
    "objective__min_steps_per_epoch": 5,
    "objective__batch_size": 32,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[..., None]
    return train_test_split(images, data.target, test_size=500, random_state=0)


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
    est = Roundtrip.paper_images(**TINY_PAPER).fit(X[:200], context=y[:200])
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
    learnt = Roundtrip(noise="diagonal", **TINY).set_params(objective__min_steps_per_epoch=30)
    learnt.fit(digits[0][:100])
    assert len(np.unique(learnt.sigma_)) > 1
    with pytest.raises(ValueError, match="one number per pixel"):
        Roundtrip(network="conv", noise="mixture", **TINY).fit(digits[0][:100])


def test_large_images_are_learnt_at_a_lower_rate(digits):
    """At the rate of small ones the codes of 24 x 24 pixels in colour fly apart."""
    rates = [
        fit_options(Roundtrip().get_params(), pixels=pixels).objective.learning_rate
        for pixels in (64, 784, 3136)
    ]
    assert rates[0] == rates[1] == pytest.approx(16 * rates[2])
    given = Roundtrip().set_params(objective__learning_rate=0.1).get_params()
    assert fit_options(given, pixels=3136).objective.learning_rate == 0.1
    X = np.tile(digits[0][:400], (1, 3, 3, 3))
    low, high = (
        Roundtrip(**TINY)
        .set_params(objective__min_steps_per_epoch=40, objective__learning_rate=rate)
        .fit(X)
        .history_["validation_log_likelihood"][-1]
        for rate in ("auto", rates[0])
    )
    assert low > high + 1000


def test_tables_need_table_networks():
    with pytest.raises(ValueError, match="conv"):
        Roundtrip(network="conv", **TINY).fit(np.zeros((20, 4)))


def test_digits_are_classified_by_their_density(digits):
    train, test, train_labels, test_labels = digits
    clf = RoundtripClassifier(random_state=0).fit(train, train_labels, max_time=12)
    assert clf.score(test[:100], test_labels[:100]) >= 0.93
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
