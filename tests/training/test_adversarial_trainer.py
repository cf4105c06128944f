import copy

import pytest
import torch
from adversarial_setup import Setup


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
        # Biases before batch norm have gradient zero: what float32 leaves of the sum is relative
        # to the largest gradient.
        largest = max(gradient.abs().max().item() for gradient in by_hand)
        for ours, theirs in zip(stepped, by_hand, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6 * max(1, largest))


def test_a_settled_sigma_stays_while_weights_are_averaged():
    setup = Setup(averaging=0.9)
    setup.trainer.kept.noise.set_sigma(0.2)
    for _ in range(5):
        setup.trainer.step(next(setup.stream))
    assert setup.trainer.kept.sigma.item() == pytest.approx(0.2, rel=1e-6)


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
