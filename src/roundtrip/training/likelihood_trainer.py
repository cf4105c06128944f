"""Likelihood training: G, H and the observation model maximise a bound on log p(x)."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from roundtrip.data import Rows
from roundtrip.model.adam import Adam
from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import hidden_weights
from roundtrip.training.averaging import AveragedModel
from roundtrip.training.bound import importance_weighted_bound
from roundtrip.training.flat import flattened, stacked
from roundtrip.training.muon import Muon

ADAM_BETAS = (0.95, 0.95)
"""A shorter memory of the second moment than usual, because this gradient changes size quickly."""

MUON_RATE = 5.0
"""Learning rate of the matrices between hidden layers, in units of Adam's for all other weights."""

LARGEST_GRADIENT = 2.0
WARM_UP_STEPS = 50


class LikelihoodTrainer:
    """Updates of G, H and the noise on the importance-weighted bound.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    draws : int
        Draws of z per row.
    learning_rate : float
        Highest learning rate of Adam. It warms up and then falls to zero along a cosine.
    averaging : float
        Decay per step of the running average of the weights, which becomes `kept`. With 0 the
        weights themselves are kept.
    rng : torch.Generator
        Source of all random numbers, on the device of the networks.
    """

    def __init__(
        self,
        model: RoundtripModel,
        *,
        draws: int,
        learning_rate: float,
        averaging: float,
        rng: torch.Generator,
    ) -> None:
        self.model = model
        self.draws = draws
        self._average = AveragedModel(model, decay=averaging)
        hidden = [*hidden_weights(model.generator), *hidden_weights(model.encoder)]
        matrices = {id(weight) for weight in hidden}
        self._hidden = stacked(hidden)
        self._others = flattened(w for w in model.parameters() if id(w) not in matrices)
        self.kept = self._average.average
        self.networks = nn.ModuleDict({"model": model})
        if self.kept is not model:
            self.networks["kept"] = self.kept
        self._rng = rng
        self.restart(learning_rate)

    def restart(self, learning_rate: float) -> None:
        """Reset the optimisers, warm up again and continue at another learning rate."""
        self.learning_rate = learning_rate
        self._adam = Adam(self._others, lr=learning_rate, betas=ADAM_BETAS)
        self._muon = Muon(self._hidden, lr=MUON_RATE * learning_rate)
        self._warm_up = 0

    def schedule(self, fraction: float) -> None:
        """Set the learning rate after a `fraction` of training, from 0 to 1."""
        self._warm_up += 1
        rate = self.learning_rate * 0.5 * (1 + math.cos(math.pi * min(fraction, 1.0)))
        rate *= min(1.0, self._warm_up / WARM_UP_STEPS)
        self._adam.lr, self._muon.lr = rate, MUON_RATE * rate

    def step(self, rows: Rows) -> dict[str, Tensor]:
        """Update all weights on one batch; return the mean bound before the update."""
        bound = importance_weighted_bound(
            self.model, rows, n_draws=self.draws, rng=self._rng
        ).mean()
        for weights in (*self._hidden, *self._others):
            assert weights.grad is not None
            weights.grad.zero_()
        (-bound).backward()
        nn.utils.clip_grad_norm_([*self._hidden, *self._others], LARGEST_GRADIENT)
        self._adam.step()
        self._muon.step()
        self._average.update()
        return {"bound": bound.detach()}

    def state_dict(self) -> dict[str, Any]:
        """Return everything that further steps depend on."""
        return {
            "networks": self.networks.state_dict(),
            "adam": self._adam.state_dict(),
            "muon": self._muon.state_dict(),
            "learning_rate": self.learning_rate,
            "warm_up": self._warm_up,
            "averaged_steps": self._average.steps,
            "rng": self._rng.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""
        self.restart(state["learning_rate"])
        self.networks.load_state_dict(state["networks"])
        self._adam.load_state_dict(state["adam"])
        self._muon.load_state_dict(state["muon"])
        self._warm_up = state["warm_up"]
        self._average.steps = state["averaged_steps"]
        self._rng.set_state(state["rng"])
