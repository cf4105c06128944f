import math
import signal
import warnings

import numpy as np
import pytest
import torch
from adversarial_setup import Setup
from sklearn.exceptions import ConvergenceWarning


def test_best_weights_are_restored():
    setup = Setup()
    result = setup.train(max_epochs=8)
    history = result.history["validation_log_likelihood"]
    assert result.best_epoch == 1 + int(np.argmax(history))
    assert setup.validation(1) == pytest.approx(max(history))
    assert setup.trainer.kept.sigma.item() == result.history["sigma"][result.best_epoch - 1]


def test_patience_stops_training():
    setup = Setup(learning_rate=1e-12)
    setup.validation.sigmas = setup.validation.sigmas[:1]
    scores = iter([1.0, 3.0] + [2.0] * 50)
    original = setup.validation

    class Scripted:
        model, selection_epochs, scores_start = original.model, None, False

        def __call__(self, epoch):
            return next(scores)

        def report(self):
            return {}

    setup.validation = Scripted()
    result = setup.train(max_epochs=50, patience=4)
    assert (result.stopped_by, result.n_epochs, result.best_epoch) == ("patience", 6, 2)


def test_patience_waits_until_sigma_is_settled():
    setup = Setup(selection_epochs=6, learning_rate=1e-12)
    result = setup.train(max_epochs=50, patience=2)
    assert result.stopped_by == "patience"
    assert result.n_epochs >= 8


def test_only_epochs_with_the_settled_sigma_compete():
    setup = Setup(selection_epochs=3)
    scores = iter([9.0, 8.0, 1.0, 2.0, 1.5])
    original = setup.validation

    class Scripted:
        model, selection_epochs, scores_start = original.model, 3, False

        def __call__(self, epoch):
            return next(scores)

        def report(self):
            return {}

    setup.validation = Scripted()
    assert setup.train(max_epochs=5).best_epoch == 4


def test_history_has_every_loss_of_every_epoch():
    history = Setup().train(max_epochs=3).history
    assert set(history) == {
        "g_adversarial", "h_adversarial", "roundtrip_x", "roundtrip_z", "d_x", "d_z",
        "validation_log_likelihood", "sigma", "learning_rate", "seconds",
    }  # fmt: skip
    assert {len(values) for values in history.values()} == {3}
    assert history["seconds"] == sorted(history["seconds"])


@pytest.mark.parametrize("times", [1, 5])
def test_divergence_goes_back_to_good_weights(times):
    setup = Setup()
    step, calls = setup.trainer.step, []

    def sometimes_nan(x):
        calls.append(x)
        losses = step(x)
        if len(calls) in range(6, 6 + times):
            with torch.no_grad():
                setup.trainer.model.generator[0].weight.fill_(math.nan)
            losses["d_x"] = torch.tensor(math.nan)
        return losses

    setup.trainer.step = sometimes_nan
    with pytest.warns(ConvergenceWarning, match=f"diverged {min(times, 4)} time"):
        result = setup.train(max_epochs=4)
    weights = setup.trainer.networks.state_dict().values()
    assert all(torch.isfinite(value).all() for value in weights)
    assert setup.trainer.learning_rate == pytest.approx(1e-3 / 2 ** min(times, 3))
    assert (result.stopped_by, result.n_epochs) == (
        ("max_epochs", 4) if times == 1 else ("divergence", 1)
    )


def test_a_collapse_is_taken_back_like_a_divergence():
    """Where the bound falls by more than is tolerated; elsewhere it may fall and rise."""
    script = [-10.0, -9.0, -500.0, -8.0, -7.0]
    for largest_fall, kept, rate in ((20.0, [-10, -9, -8, -7], 5e-4), (math.inf, script, 1e-3)):
        setup = Setup()
        bounds = iter([bound for bound in script for _ in range(4)])  # steps of an epoch
        step = setup.trainer.step
        setup.trainer.step = lambda x, step=step, bounds=bounds: (
            step(x) | {"bound": torch.tensor(next(bounds))}
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = setup.train(max_epochs=len(kept), largest_fall=largest_fall)
        assert result.history["bound"] == kept
        assert setup.trainer.learning_rate == rate
        assert any("collapsed" in str(each.message) for each in caught) == (rate < 1e-3)


def test_nan_from_the_first_step_leaves_finite_weights():
    setup = Setup(learning_rate=1e30)
    with pytest.warns(ConvergenceWarning, match="those it began with"):
        result = setup.train()
    assert result.best_epoch == 0
    weights = setup.trainer.networks.state_dict().values()
    assert all(torch.isfinite(value).all() for value in weights)


@pytest.fixture
def ctrl_c():
    """Ctrl-C interrupts, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_interrupt_keeps_the_best_weights_so_far():
    setup = Setup()
    step, calls = setup.trainer.step, []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 14:
            signal.raise_signal(signal.SIGINT)
        return step(x)

    setup.trainer.step = interrupted
    with pytest.warns(ConvergenceWarning, match="interrupted after 3 epochs"):
        result = setup.train(max_epochs=100)
    assert (result.stopped_by, result.n_epochs) == ("interrupt", 3)
    assert setup.validation(1) == pytest.approx(max(result.history["validation_log_likelihood"]))
