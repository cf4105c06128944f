"""Hybrid: two stages of training that are one fit."""

import time

import numpy as np
import pytest

from roundtrip import Hybrid, Isotropic, Mixture, Residual, Roundtrip, Validation, load
from roundtrip.options import fit_options

OBJECTIVE = Hybrid(min_steps_per_epoch=5)
SMALL = {"latent_dim": 2, "network": Residual(16, 1), "random_state": 0}


@pytest.fixture
def rows(rng):
    return rng.normal(size=(300, 2))


def test_the_adversarial_losses_come_first(rows, tmp_path):
    est = Roundtrip(objective=OBJECTIVE, max_epochs=6, **SMALL).fit(rows)
    history = est.history_
    assert {len(values) for values in history.values()} == {est.n_iter_} == {6}
    assert np.isnan(history["d_x"]).tolist() == [False] * 2 + [True] * 4
    assert np.isfinite(history["bound"]).all()
    assert (np.diff(history["seconds"]) > 0).all()
    assert history["learning_rate"][0] == history["learning_rate"][-1] / 8
    best = int(np.argmax(history["validation_log_likelihood"][2:])) + 3
    assert est.best_epoch_ == best
    est.save(tmp_path / "model.rt")
    np.testing.assert_equal(load(tmp_path / "model.rt").history_, history)


def test_both_stages_keep_to_the_time(rows):
    start = time.perf_counter()
    est = Roundtrip(objective="hybrid", validation=Validation(patience=10_000), **SMALL).fit(
        rows, max_time=1.5
    )
    assert time.perf_counter() - start < 3
    assert est.stopped_by_ == "max_time"
    in_first = np.isfinite(est.history_["d_x"]).sum()
    assert 0 < in_first < est.n_iter_


def test_one_epoch_is_one_epoch(rows):
    est = Roundtrip(objective=OBJECTIVE, max_epochs=1, **SMALL).fit(rows)
    assert est.n_iter_ == 1
    assert "d_x" not in est.history_


def test_an_interrupt_of_the_second_stage_keeps_the_first(rows, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("roundtrip.training.likelihood_trainer.LikelihoodTrainer.step", interrupt)
    with pytest.warns(UserWarning, match="likelihood after: .*those it began with"):
        est = Roundtrip(objective=OBJECTIVE, max_epochs=6, **SMALL).fit(rows)
    assert est.stopped_by_ == "interrupt"
    assert est.n_iter_ == 2
    assert est.best_epoch_ in (1, 2)


def test_images_have_the_defaults_of_images():
    params = Roundtrip(objective="hybrid").get_params()
    assert isinstance(fit_options(params, pixels=64).noise, Isotropic)
    assert isinstance(fit_options(params).noise, Mixture)


def test_an_interrupt_of_the_first_stage_ends_the_fit(rows, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("roundtrip.training.adversarial_trainer.AdversarialTrainer.step", interrupt)
    with pytest.warns(UserWarning, match="interrupted"):
        est = Roundtrip(objective="hybrid", max_epochs=6, **SMALL).fit(rows)
    assert est.stopped_by_ == "interrupt"
    assert est.n_iter_ == 0


def test_the_second_stage_has_at_least_one_epoch(rows):
    objective = Hybrid(first_share=0.8, min_steps_per_epoch=5)
    assert Roundtrip(objective=objective, max_epochs=2, **SMALL).fit(rows).n_iter_ == 2
