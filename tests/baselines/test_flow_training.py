import math
from types import SimpleNamespace

import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from roundtrip.baselines.budget import Budget
from roundtrip.baselines.flow_training import flow_log_density, train_flow

STEPS = 20  # of an epoch of a table this small


class Affine(nn.Module):
    """z = (x - shift) exp(-log_scale), a flow of which everything is known.

    `broken` holds the numbers of the training steps whose density is NaN.
    """

    def __init__(self, broken=()):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(2))
        self.log_scale = nn.Parameter(torch.zeros(2))
        self.calls, self.broken = 0, broken

    def forward(self):
        return SimpleNamespace(transform=self)

    def call_and_ladj(self, x):
        z = (x - self.shift) * torch.exp(-self.log_scale)
        if torch.is_grad_enabled():
            self.calls += 1
            if self.calls - 1 in self.broken:
                z = z * math.nan
        return z, -self.log_scale.sum().expand(len(x))


def train(flow, *, data=None, max_time=None, **settings):
    if data is None:
        data = 3 + 2 * torch.randn(600, 2, generator=torch.Generator().manual_seed(0))
    settings = {
        "learning_rate": 0.1,
        "batch_size": 64,
        "max_epochs": 10,
        "patience": 10,
        "averaging": 0.9,
    } | settings
    return train_flow(
        flow,
        data[:500],
        data[500:],
        budget=Budget(max_time),
        rng=torch.Generator().manual_seed(0),
        **settings,
    )


@pytest.mark.parametrize("averaging", [0.0, 0.9])
def test_finds_the_maximum_and_keeps_the_best_weights(averaging):
    flow = Affine()
    result = train(flow, averaging=averaging)
    torch.testing.assert_close(flow.shift.detach(), torch.full((2,), 3.0), atol=0.3, rtol=0)
    assert flow.log_scale.exp().tolist() == pytest.approx([2, 2], abs=0.2)
    scores = result.history["validation_log_likelihood"]
    assert result.n_epochs == len(scores) == 10
    assert result.best_score == max(scores) == scores[result.best_epoch - 1]
    assert flow.calls == 10 * STEPS


def test_progress_bar_shows_what_matters(capfd):
    train(Affine(), verbose=True)
    shown = capfd.readouterr().err
    for part in ("epoch 10", "log-lik", "left", " rows/s"):
        assert part in shown
    train(Affine())
    assert capfd.readouterr().err == ""


def test_kept_weights_have_the_reported_score():
    flow = Affine()
    data = 3 + 2 * torch.randn(600, 2, generator=torch.Generator().manual_seed(0))
    # At this learning rate the weights jump about: the last epoch is not the best.
    result = train(flow, data=data, learning_rate=3.0, averaging=0.0, max_epochs=5)
    with torch.no_grad():
        score = flow_log_density(flow, data[500:]).mean().item()
    assert score == pytest.approx(result.best_score, abs=1e-6)


def test_log_det_is_added():
    plain, shifted = (train(Affine(), log_det=value) for value in (0.0, 7.0))
    assert shifted.best_score == pytest.approx(plain.best_score + 7)


def test_learning_rate_falls_to_zero_over_the_epochs():
    rates = train(Affine()).history["learning_rate"]
    assert rates == sorted(rates, reverse=True)
    assert rates[4] == pytest.approx(0.05, rel=0.1)
    assert rates[-1] < 1e-4


def test_learning_rate_falls_to_zero_over_the_time():
    result = train(Affine(), max_time=0.3, max_epochs=100_000, patience=100_000)
    assert result.stopped_by == "max_time"
    assert 0.25 < result.history["seconds"][-1] < 0.4
    assert result.history["learning_rate"][-1] < 2e-3


def test_patience():
    flow = Affine()
    result = train(flow, learning_rate=1e-30, max_epochs=50, patience=3, averaging=0.0)
    assert result.stopped_by == "patience"
    assert (result.best_epoch, result.n_epochs) == (1, 4)


@pytest.mark.parametrize("times", [1, 3])
def test_recovers_from_divergence(times):
    # The first break is in the third epoch, each further one right after the return.
    flow = Affine(broken=range(2 * STEPS + 5, 2 * STEPS + 5 + times))
    with pytest.warns(ConvergenceWarning, match=rf"diverged {times} time\(s\).*recovered"):
        result = train(flow)
    assert result.stopped_by == "max_epochs"
    assert result.n_epochs == 10
    assert result.history["learning_rate"][2] < 0.1 / 2**times
    torch.testing.assert_close(flow.shift.detach(), torch.full((2,), 3.0), atol=0.5, rtol=0)


def test_gives_up_after_three_recoveries_and_keeps_the_best():
    flow = Affine(broken=range(2 * STEPS, 1000))
    with pytest.warns(ConvergenceWarning, match="diverged 4 time.*given up.*epoch 2 are kept"):
        result = train(flow)
    assert result.stopped_by == "divergence"
    assert (result.best_epoch, result.n_epochs) == (2, 2)
    assert flow.shift.isfinite().all()


def test_untrained_if_nothing_worked():
    flow = Affine(broken=range(1000))
    with pytest.warns(ConvergenceWarning, match="untrained"):
        result = train(flow)
    assert flow.shift.tolist() == [0, 0]
    assert math.isfinite(result.best_score)


def test_an_outlier_whose_gradient_overflows_is_skipped():
    data = 3 + 2 * torch.randn(600, 2, generator=torch.Generator().manual_seed(0))
    data[7] = 1e30  # its loss is finite in float64, its gradient is not in float32
    flow = Affine()
    train(flow, data=data)
    torch.testing.assert_close(flow.shift.detach(), torch.full((2,), 3.0), atol=0.5, rtol=0)
