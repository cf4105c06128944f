import pytest
import torch
from adversarial_setup import Setup
from oracles import LinearModel

from roundtrip.data import Rows
from roundtrip.training.validators import SigmaValidation


def test_sigma_is_settled_after_the_selection_epochs():
    setup = Setup(selection_epochs=2)
    for epoch in (2, 3):
        setup.trainer.kept.noise.set_sigma(0.3)  # not on the grid
        setup.validation(epoch)
        assert (setup.trainer.kept.sigma.item() == pytest.approx(0.3)) == (epoch == 3)


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
