"""The paper's training: GAN losses, eq. (13), roundtrip loss, eq. (14), alternation, eq. (15)."""

from typing import Any

import torch
from torch import Tensor, nn

from roundtrip.data import Rows
from roundtrip.model.core import RoundtripModel, beside
from roundtrip.training.averaging import AveragedModel
from roundtrip.training.bound import importance_weighted_bound
from roundtrip.training.pool import FakePool

ADAM_BETAS = (0.5, 0.9)


class AdversarialTrainer:
    """Alternating updates of (G, H) and (D_x, D_z), eq. (15).

    One `step` updates each pair once.

    Parameters
    ----------
    model : RoundtripModel
        Model with G and H.
    discriminator_x, discriminator_z : torch.nn.Module
        D_x and D_z.
    alpha, beta : float
        Weights of the two roundtrip losses, eq. (14).
    learning_rate : float
        Learning rate of Adam for both pairs.
    pool_size : int
        Number of earlier fake batches kept to train the discriminators.
    averaging : float, default=0.0
        Decay per step of the running average of G's and H's weights, which becomes `kept`. With 0
        the weights themselves are kept.
    bound_weight : float, default=0.0
        Weight of the importance-weighted bound per feature, which "hybrid" training adds. 0 is the
        paper's objective.
    draws : int, default=1
        Draws of z per row for the bound.
    rng : torch.Generator
        Source of all random numbers, on the device of the networks.
    """

    def __init__(
        self,
        model: RoundtripModel,
        discriminator_x: nn.Module,
        discriminator_z: nn.Module,
        *,
        alpha: float,
        beta: float,
        learning_rate: float,
        pool_size: int,
        averaging: float = 0.0,
        bound_weight: float = 0.0,
        draws: int = 1,
        rng: torch.Generator,
    ) -> None:
        self.model = model
        self.networks = nn.ModuleDict(
            {"model": model, "discriminator_x": discriminator_x, "discriminator_z": discriminator_z}
        )
        if bound_weight == 0:
            model.noise.requires_grad_(False)  # validation chooses sigma
        self._average = AveragedModel(model, decay=averaging)
        self.kept = self._average.average
        """The model to validate and to keep: `model` or the running average of its weights."""
        if self.kept is not model:
            self.networks["kept"] = self.kept
        self.bound_weight = bound_weight
        self.draws = draws
        self.alpha = alpha
        self.beta = beta
        self._discriminators = nn.ModuleList([discriminator_x, discriminator_z])
        self._rng = rng
        norms = nn.BatchNorm1d | nn.BatchNorm2d
        self._batch_norm_in_g = any(isinstance(part, norms) for part in model.generator.modules())
        seeds = torch.randint(2**31, (2,), generator=rng, device=rng.device).tolist()
        self._pool_x = FakePool(pool_size, seeds[0])
        self._pool_z = FakePool(pool_size, seeds[1])
        self.restart(learning_rate)

    def restart(self, learning_rate: float) -> None:
        """Reset the optimisers and the pools, and continue at another learning rate."""
        self.learning_rate = learning_rate
        self._optimizer_gh = self._adam(self.model)
        self._optimizer_d = self._adam(self._discriminators)
        self._pool_x.batches.clear()
        self._pool_z.batches.clear()

    def schedule(self, fraction: float) -> None:
        """Do nothing: the paper's learning rate is constant."""

    def step(self, rows: Rows) -> dict[str, Tensor]:
        """Update G and H, then D_x and D_z, on one batch, eq. (15).

        A context enters G and D_x, as in the paper.

        Parameters
        ----------
        rows : Rows
            The batch.

        Returns
        -------
        dict of str to Tensor
            The losses of eq. (13) and (14) before the update, as 0-d tensors.
        """
        D_x, D_z = self._discriminators
        x, context = rows.x, rows.context
        z = self.model.prior.draw_like(x.new_empty(len(x), self.model.latent_dim), self._rng)

        # First line of eq. (15): L(G, H) = L_GAN(G) + L_GAN(H) + L_RT(G, H).
        fake_z = self.model.encode(x, context)
        fake_x, roundtrip_x = self._generated(z, fake_z, context)
        roundtrip_z = self.model.encode(fake_x, context)
        losses = {
            "g_adversarial": (D_x(beside(fake_x, context)) - 1).square().mean(),  # eq. (13)
            "h_adversarial": (D_z(fake_z) - 1).square().mean(),  # eq. (13)
            "roundtrip_x": (x - roundtrip_x).square().mean(),  # eq. (14)
            "roundtrip_z": (z - roundtrip_z).square().mean(),  # eq. (14)
        }
        total = (
            losses["g_adversarial"]
            + losses["h_adversarial"]
            + self.alpha * losses["roundtrip_x"]
            + self.beta * losses["roundtrip_z"]
        )
        if self.bound_weight > 0:
            losses["bound"] = importance_weighted_bound(
                self.model, rows, n_draws=self.draws, rng=self._rng
            ).mean()
            total = total - self.bound_weight * losses["bound"] / x.shape[1]
        self._update(self._optimizer_gh, total)
        self._average.update()

        # Second line of eq. (15): D_x and D_z tell real batches from fakes of the pool.
        losses["d_x"] = self._discriminator_loss(
            D_x, beside(x, context), self._pool_x.exchange(beside(fake_x.detach(), context))
        )
        losses["d_z"] = self._discriminator_loss(D_z, z, self._pool_z.exchange(fake_z.detach()))
        self._update(self._optimizer_d, losses["d_x"] + losses["d_z"])
        return {name: loss.detach() for name, loss in losses.items()}

    def _generated(self, drawn: Tensor, encoded: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return G of two batches of codes."""
        if self._batch_norm_in_g:  # its statistics must not mix the two batches
            return self.model.generate(drawn, context), self.model.generate(encoded, context)
        # One pass for both batches, because G is the largest network.
        both = self.model.generate(torch.cat([drawn, encoded]), torch.cat([context, context]))
        fake_x, roundtrip_x = both.split(len(drawn))
        return fake_x, roundtrip_x

    def state_dict(self) -> dict[str, Any]:
        """Return everything that further steps depend on."""
        return {
            "networks": self.networks.state_dict(),
            "optimizer_gh": self._optimizer_gh.state_dict(),
            "optimizer_d": self._optimizer_d.state_dict(),
            "learning_rate": self.learning_rate,
            "pool_x": self._pool_x.state_dict(),
            "pool_z": self._pool_z.state_dict(),
            "averaged_steps": self._average.steps,
            "rng": self._rng.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a `state_dict`."""
        self.restart(state["learning_rate"])
        self.networks.load_state_dict(state["networks"])
        self._optimizer_gh.load_state_dict(state["optimizer_gh"])
        self._optimizer_d.load_state_dict(state["optimizer_d"])
        self._pool_x.load_state_dict(state["pool_x"], self.model.device)
        self._pool_z.load_state_dict(state["pool_z"], self.model.device)
        self._average.steps = state["averaged_steps"]
        self._rng.set_state(state["rng"])

    @staticmethod
    def _discriminator_loss(discriminator: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
        # Real and fake rows share one pass, but batch norm does not mix them.
        scores = discriminator(torch.stack([real, fake], dim=1))
        # eq. (13). The mean is half of the sum printed there, as in the authors' code.
        return (scores - scores.new_tensor([[1.0], [0.0]])).square().mean()

    @staticmethod
    def _update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        # Gradients only of the weights to update: the loss of G also depends on those of D_x.
        loss.backward(inputs=optimizer.param_groups[0]["params"])
        optimizer.step()

    def _adam(self, network: nn.Module) -> torch.optim.Adam:
        # The fused optimiser passes over the weights once instead of a dozen times.
        trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        return torch.optim.Adam(trained, lr=self.learning_rate, betas=ADAM_BETAS, fused=True)
