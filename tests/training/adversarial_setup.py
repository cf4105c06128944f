"""A tiny adversarial training with all its parts at hand."""

import torch

from roundtrip import RoundtripModel
from roundtrip.data import Rows
from roundtrip.model.networks import discriminator, mlp
from roundtrip.training.adversarial_trainer import AdversarialTrainer
from roundtrip.training.batches import Batches
from roundtrip.training.loop import train
from roundtrip.training.validators import SigmaValidation


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
