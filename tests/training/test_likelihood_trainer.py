import numpy as np
import pytest
import torch
from oracles import residual_model

from roundtrip import Likelihood, Residual, Roundtrip
from roundtrip.data import Rows
from roundtrip.training.batches import Batches
from roundtrip.training.likelihood_trainer import LikelihoodTrainer
from roundtrip.training.loop import train
from roundtrip.training.principal import start_at_principal_components
from roundtrip.training.validators import BoundValidation


def test_training_reaches_what_a_line_cannot():
    rng = np.random.default_rng(0)
    z = rng.normal(size=4000)
    x = torch.from_numpy(np.c_[z, z**2] + 0.1 * rng.normal(size=(4000, 2)))
    data = Rows.without_context((x - x.mean(0)) / x.std(0))
    model = residual_model(1, 2)
    start_at_principal_components(model, data)
    rng = torch.Generator().manual_seed(0)
    trainer = LikelihoodTrainer(model, draws=1, learning_rate=5e-3, averaging=0.9, rng=rng)
    data = data.to(torch.float32)
    validation = BoundValidation(trainer.kept, data[:500], draws=20, seed=0)
    before = validation(0)
    stream = Batches(data[500:], 128, sampling="shuffle", rng=rng)
    result = train(trainer, stream, validation, steps_per_epoch=100, max_epochs=12, patience=12)
    scores = result.history["validation_log_likelihood"]
    assert max(scores) > before + 0.5
    assert validation(0) == pytest.approx(max(scores))


def test_learning_rate_warms_up_and_falls_to_zero():
    trainer = LikelihoodTrainer(
        residual_model(1, 2), draws=1, learning_rate=1.0, averaging=0.0, rng=torch.Generator()
    )
    rates = []
    for step in range(1000):
        trainer.schedule(step / 999)
        rates.append(trainer._adam.lr)
    assert rates[0] < 0.05
    assert 0.8 < max(rates) <= 1.0
    assert rates[-1] == pytest.approx(0.0, abs=1e-6)


def test_a_fitted_model_has_tensors_of_its_own(rng):
    """Views of one tensor would be written whole, once for each, by pickle."""
    objective = Likelihood(averaging=0.0, min_steps_per_epoch=4)
    est = Roundtrip(1, objective=objective, network=Residual(16, 1), max_epochs=1).fit(
        rng.normal(size=(40, 2))
    )
    for parameter in est.model_.parameters():
        assert parameter.untyped_storage().nbytes() == parameter.nbytes
        assert parameter.grad is None
