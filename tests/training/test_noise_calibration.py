"""Noise that is made wider after training, by held-out rows."""

import pytest
import torch

from roundtrip import Roundtrip, load
from roundtrip.data import Rows
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import ConstantGaussian, MixtureNoise
from roundtrip.training.calibration import calibrate

ROWS = 400


class Fold:
    """Held-out rows of a fold, without rounding."""

    def __init__(self, values):
        self.validation = Rows.without_context(values)

    def spread(self, rows, rng):
        return rows


class Constant(torch.nn.Module):
    """A network whose outputs do not depend on its input."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = torch.nn.Parameter(outputs)

    def forward(self, inputs):
        return self.outputs.expand(len(inputs), -1)


def model_of(width):
    """x ~ N(0, width²) for every z, with the exact posterior N(0, 1)."""
    noise = MixtureNoise(1, moving=1, fixed=0)
    outputs = torch.zeros(noise.n_outputs)
    outputs[0], outputs[1] = 1.5 * width, 30.0  # the Gaussian at 0, and no weight for the tail
    noise.start(torch.randn(100, 1, generator=torch.Generator().manual_seed(0)), width)
    encoder = Constant(torch.tensor([0.0, 0.5413]))  # softplus(0.5413) = 1
    return RoundtripModel(Constant(outputs), encoder, 1, noise=noise, has_posterior=True)


@pytest.mark.parametrize(("width", "factor"), [(1.0, 1.0), (0.77, 1.3), (0.4, 1.5)])
def test_held_out_rows_choose_the_width(width, factor):
    values = torch.randn(ROWS, 1, generator=torch.Generator().manual_seed(1))
    values /= values.square().mean().sqrt()
    folds = [Fold(values[:200]), Fold(values[200:])]
    models, final = [model_of(width) for _ in folds], model_of(width)
    calibrate(final, models, folds, draws=8, seed=0)
    for model in (final, *models):
        assert model.noise.widening.item() == pytest.approx(factor)


def test_held_out_rows_choose_the_temperature():
    """Weights of 0.99 and 0.01 for values that are as frequent as each other are too sharp."""
    noise = MixtureNoise(1, moving=2, fixed=0)
    outputs = torch.zeros(noise.n_outputs)
    outputs[1:4] = torch.tensor([4.6, 0.0, -30.0])
    noise.start(torch.randn(100, 1, generator=torch.Generator().manual_seed(0)), 1.0)
    encoder = Constant(torch.tensor([0.0, 0.5413]))
    model = RoundtripModel(Constant(outputs), encoder, 1, noise=noise, has_posterior=True)
    sample = noise.sample(outputs.expand(300, -1) * 0, torch.Generator().manual_seed(2))
    calibrate(model, [model], [Fold(sample)], draws=8, seed=0)
    assert noise.sharpness.item() == pytest.approx(0.5)


def test_conditional_fits_are_calibrated_and_files_keep_it(monkeypatch, tmp_path, rng):
    monkeypatch.setattr(MixtureNoise, "calibrations", ((1.15, 1.2),))
    context = rng.normal(size=(60, 2))
    X = context[:, :1] + rng.normal(size=(60, 1))
    est = Roundtrip(random_state=0, warm_start=True).fit(X, context=context, max_time=3)
    est.save(tmp_path / "model.rt")
    for fitted in (est, load(tmp_path / "model.rt"), est.fit(X, context=context, max_time=1)):
        assert fitted.model_.noise.widening.item() == pytest.approx(1.15)
        assert fitted.model_.noise.sharpness.item() == pytest.approx(1 / 1.2)
    alone = Roundtrip(random_state=0).fit(X, max_time=3)
    assert alone.model_.noise.widening.item() == 1


def test_ctrl_c_leaves_the_noise_as_it_was_trained(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("roundtrip.training.calibration.BoundValidation.__call__", interrupted)
    model = model_of(0.4)
    calibrate(model, [model], [Fold(torch.zeros(5, 1))], draws=2, seed=0)
    assert model.noise.widening.item() == 1


def test_noise_without_calibrations_stays_as_it_is():
    encoder = Constant(torch.tensor([0.0, 0.5413]))
    noise = ConstantGaussian(1, sigma=0.3)
    model = RoundtripModel(torch.nn.Linear(1, 1), encoder, 1, noise=noise, has_posterior=True)
    calibrate(model, [model], [Fold(torch.zeros(5, 1))], draws=2, seed=0)
    assert model.noise.sigma.item() == pytest.approx(0.3)
