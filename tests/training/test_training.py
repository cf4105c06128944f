import copy
import math
import signal
import warnings

import numpy as np
import pytest
import torch
from oracles import LinearModel
from sklearn.exceptions import ConvergenceWarning

from roundtrip import RoundtripModel
from roundtrip.data import Rows
from roundtrip.model.networks import discriminator, mlp
from roundtrip.training.adversarial_trainer import AdversarialTrainer
from roundtrip.training.batches import Batches
from roundtrip.training.loop import train
from roundtrip.training.pool import FakePool
from roundtrip.training.validation import SigmaValidation


class Setup:
    """A tiny training problem with all its parts at hand."""

    def __init__(
        self,
        *,
        averaging=0.0,
        learning_rate=1e-3,
        rows=256,
        selection_epochs=None,
        batch_norm_in_g=False,
    ):
        rng = torch.Generator().manual_seed(0)
        self.data = Rows.without_context(torch.randn(rows, 3, generator=rng))
        G = mlp(2, 3, (16, 16), rng=rng)
        if batch_norm_in_g:
            G = torch.nn.Sequential(G, torch.nn.BatchNorm1d(3))
        model = RoundtripModel(G, mlp(3, 2, (16,), rng=rng), 2, 1.0)
        self.trainer = AdversarialTrainer(
            model,
            discriminator(3, (16, 16), rng=rng),
            discriminator(2, (16, 16), rng=rng),
            alpha=10.0,
            beta=10.0,
            learning_rate=learning_rate,
            pool_size=5,
            averaging=averaging,
            rng=rng,
        )
        self.validation = SigmaValidation(
            self.trainer.kept,
            self.data[:50].to(torch.float64),
            sigmas=(0.05, 0.2, 1.0),
            selection_epochs=selection_epochs,
            draws=50,
            scale=0.5,
            df=1.0,
            seed=0,
        )
        self.stream = Batches(self.data, 32, sampling="shuffle", rng=rng)

    def train(self, **settings):
        settings = {"steps_per_epoch": 4, "max_epochs": 3, "patience": 10} | settings
        return train(self.trainer, self.stream, self.validation, **settings)


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_training_changes_every_weight_of_every_network(averaging):
    setup = Setup(averaging=averaging)
    before = copy.deepcopy(setup.trainer.networks.state_dict())
    setup.train()
    after = setup.trainer.networks.state_dict()
    still = [
        name
        for name, value in after.items()
        if torch.equal(value, before[name]) and not name.startswith(("model.noise.", "kept.noise."))
    ]
    # The loss does not depend on a bias that batch norm subtracts again.
    assert all(name.endswith("2.bias") and "discriminator" in name for name in still)
    assert len(still) <= 2


@pytest.mark.parametrize("batch_norm_in_g", [False, True])
def test_losses_and_gradients_are_those_of_the_paper(batch_norm_in_g):
    """Eq. (13)-(15), computed by hand on the first batch."""
    setup = Setup(batch_norm_in_g=batch_norm_in_g)
    networks = copy.deepcopy(setup.trainer.networks).train()
    G, H = networks["model"].generator, networks["model"].encoder
    D_x, D_z = networks["discriminator_x"], networks["discriminator_z"]
    rows = setup.data[:32]
    x = rows.x
    state = setup.trainer._rng.get_state()
    losses = setup.trainer.step(rows)
    setup.trainer._rng.set_state(state)
    z = torch.randn(32, 2, generator=setup.trainer._rng)
    fake_x, fake_z = G(z).detach(), H(x).detach()
    expected = {
        "g_adversarial": ((D_x(G(z)) - 1) ** 2).mean(),
        "h_adversarial": ((D_z(H(x)) - 1) ** 2).mean(),
        "roundtrip_x": ((x - G(H(x))) ** 2).mean(),
        "roundtrip_z": ((z - H(G(z))) ** 2).mean(),
        "d_x": (((D_x(x) - 1) ** 2).mean() + (D_x(fake_x) ** 2).mean()) / 2,
        "d_z": (((D_z(z) - 1) ** 2).mean() + (D_z(fake_z) ** 2).mean()) / 2,
    }
    assert losses.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(losses[name], value.detach(), rtol=1e-5, atol=1e-6)

    # (G, H) follow L(G, H) alone, (D_x, D_z) follow L(D_x, D_z) alone.
    pairs = {
        "model": expected["g_adversarial"]
        + expected["h_adversarial"]
        + 10 * expected["roundtrip_x"]
        + 10 * expected["roundtrip_z"],
        "discriminator_x": expected["d_x"],
        "discriminator_z": expected["d_z"],
    }
    for name, loss in pairs.items():
        # The width of the noise takes no part in adversarial training.
        weights = [p for n, p in networks[name].named_parameters() if "noise" not in n]
        by_hand = torch.autograd.grad(loss, weights, retain_graph=True)
        stepped = [
            p.grad for n, p in setup.trainer.networks[name].named_parameters() if "noise" not in n
        ]
        for ours, theirs in zip(stepped, by_hand, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


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
        model, selection_epochs = original.model, None

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


def test_sigma_is_settled_after_the_selection_epochs():
    setup = Setup(selection_epochs=2)
    for epoch in (2, 3):
        setup.trainer.kept.noise.set_sigma(0.3)  # not on the grid
        setup.validation(epoch)
        assert (setup.trainer.kept.sigma.item() == pytest.approx(0.3)) == (epoch == 3)


def test_a_settled_sigma_stays_while_weights_are_averaged():
    setup = Setup(averaging=0.9)
    setup.trainer.kept.noise.set_sigma(0.2)
    for _ in range(5):
        setup.trainer.step(next(setup.stream))
    assert setup.trainer.kept.sigma.item() == pytest.approx(0.2, rel=1e-6)


def test_only_epochs_with_the_settled_sigma_compete():
    setup = Setup(selection_epochs=3)
    scores = iter([9.0, 8.0, 1.0, 2.0, 1.5])
    original = setup.validation

    class Scripted:
        model, selection_epochs = original.model, 3

        def __call__(self, epoch):
            return next(scores)

        def report(self):
            return {}

    setup.validation = Scripted()
    assert setup.train(max_epochs=5).best_epoch == 4


def test_sigma_is_the_likeliest_of_the_grid():
    linear = LinearModel(2, 3, sigma=0.5)
    x = linear.points(300)
    validation = SigmaValidation(
        linear.model,
        Rows.without_context(torch.from_numpy(x)),
        sigmas=(0.1, 0.5, 2.0),
        selection_epochs=None,
        draws=2000,
        scale=0.5,
        df=1.0,
        seed=0,
        log_det=3.0,
    )
    linear.model.noise.set_sigma(9.0)
    score = validation(1)
    assert linear.model.sigma.item() == pytest.approx(0.5)
    assert score == pytest.approx(linear.log_density(x).mean() + 3.0, abs=0.02)


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


def test_batches_with_replacement_and_shuffled():
    data = Rows.without_context(torch.arange(10.0)[:, None])
    shuffled = Batches(data, 5, sampling="shuffle", rng=torch.Generator().manual_seed(0))
    for _ in range(3):
        assert sorted(torch.cat([next(shuffled).x, next(shuffled).x]).flatten()) == list(range(10))
    drawn = Batches(data, 1000, sampling="replacement", rng=torch.Generator().manual_seed(0))
    counts = torch.bincount(next(drawn).x[:, 0].long())
    assert counts.min() > 50
    small = Batches(data[:3], 7, sampling="shuffle", rng=torch.Generator().manual_seed(0))
    assert next(small).x.shape == (7, 1)


def test_pool_mixes_old_and_new():
    pool = FakePool(3, seed=0)
    seen = [pool.exchange(torch.full((1, 1), float(i))).item() for i in range(200)]
    ages = np.arange(200) - np.array(seen)
    assert (ages[:3] == 0).all()
    assert 0.4 < (ages[3:] == 0).mean() < 0.6
    assert (ages >= 0).all()
    assert ages[20:].max() < 50  # what was handed out is gone from the pool
    assert len(pool.batches) == 3
    assert FakePool(0, seed=0).exchange(torch.ones(1)) == 1


def test_averaging_is_the_running_mean_of_the_weights():
    setup = Setup(averaging=0.9)
    trainer = setup.trainer
    assert trainer.kept is not trainer.model
    expected = [p.detach().clone() for p in trainer.kept.parameters()]
    for step in range(1, 120):
        trainer.step(setup.data[:32])
        decay = min(0.9, (1 + step) / (10 + step))
        expected = [
            decay * old + (1 - decay) * new.detach()
            for old, new in zip(expected, trainer.model.parameters(), strict=True)
        ]
    for average, by_hand in zip(trainer.kept.parameters(), expected, strict=True):
        torch.testing.assert_close(average, by_hand, rtol=1e-4, atol=1e-6)


def test_optimiser_is_the_authors_adam():
    trainer = Setup().trainer
    for optimizer in (trainer._optimizer_gh, trainer._optimizer_d):
        assert optimizer.defaults["betas"] == (0.5, 0.9)
        assert optimizer.defaults["lr"] == 1e-3
