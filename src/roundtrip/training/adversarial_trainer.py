"""The paper's training: two least-squares GANs and the roundtrip loss, eq. (13)-(15)."""

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
    """Alternating updates of (G, H) and (D_x, D_z); one `step` is one update of each pair.

    Parameters
    ----------
    model : RoundtripModel
        Holds G and H.
    discriminator_x, discriminator_z : torch.nn.Module
        D_x and D_z.
    alpha, beta : float
        Weights of the two roundtrip losses, eq. (14).
    learning_rate : float
        Of Adam, for both pairs.
    pool_size : int
        Batches of earlier fakes that the discriminators are shown.
    averaging : float
        Decay per step of the running average of G's and H's weights that becomes `kept`; 0: the
        weights themselves are kept.
    bound_weight : float
        Weight of the importance-weighted bound per feature, which "hybrid" training adds; 0 is the
        paper's objective.
    draws : int
        Draws of z per row for the bound.
    rng : torch.Generator
        Source of all randomness; on the networks' device.
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
            model.noise.requires_grad_(False)  # validation chooses it
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
        seed = int(torch.randint(2**31, (1,), generator=rng, device=rng.device))
        self._pool_x = FakePool(pool_size, seed)
        self._pool_z = FakePool(pool_size, seed + 1)
        self.restart(learning_rate)

    def restart(self, learning_rate: float) -> None:
        """Forget the optimisers' momentum and go on at another learning rate."""
        self.learning_rate = learning_rate
        self._optimizer_gh = self._adam(self.model)
        self._optimizer_d = self._adam(self._discriminators)
        self._pool_x.batches.clear()
        self._pool_z.batches.clear()

    def schedule(self, fraction: float) -> None:
        """The paper's learning rate stays the same from the start of training to its end."""

    def step(self, rows: Rows) -> dict[str, Tensor]:
        """One update of G and H, then one of D_x and D_z, on a batch.

        With a context, G and D_x take it, as in the paper.
        Returns the losses of eq. (13) and (14) by name, before the update, as 0-d tensors.
        """
        D_x, D_z = self._discriminators
        x, context = rows.x, rows.context
        z = self.model.prior.draw_like(x.new_empty(len(x), self.model.latent_dim), self._rng)

        # G and H: L(G, H) = L_GAN(G) + L_GAN(H) + L_RT(G, H).
        fake_z = self.model.encode(x, context)
        fake_x, roundtrip_x = self._generated(z, fake_z, context)
        roundtrip_z = self.model.encode(fake_x, context)
        losses = {
            "g_adversarial": (D_x(beside(fake_x, context)) - 1).square().mean(),  # eq. (13)
            "h_adversarial": (D_z(fake_z) - 1).square().mean(),
            "roundtrip_x": (x - roundtrip_x).square().mean(),  # eq. (14)
            "roundtrip_z": (z - roundtrip_z).square().mean(),
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

        # D_x and D_z: real against fakes from the pool.
        losses["d_x"] = self._discriminator_loss(
            D_x, beside(x, context), self._pool_x.exchange(beside(fake_x.detach(), context))
        )
        losses["d_z"] = self._discriminator_loss(D_z, z, self._pool_z.exchange(fake_z.detach()))
        self._update(self._optimizer_d, losses["d_x"] + losses["d_z"])
        return {name: loss.detach() for name, loss in losses.items()}

    def _generated(self, drawn: Tensor, encoded: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """G of two batches of codes."""
        if self._batch_norm_in_g:  # it must not mix them
            return self.model.generate(drawn, context), self.model.generate(encoded, context)
        # G is the largest network: both go through it as one batch.
        both = self.model.generate(torch.cat([drawn, encoded]), torch.cat([context, context]))
        fake_x, roundtrip_x = both.split(len(drawn))
        return fake_x, roundtrip_x

    def state_dict(self) -> dict[str, Any]:
        """All that further steps depend on."""
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
        # Real and fake side by side: one pass, but batch norm does not mix them.
        scores = discriminator(torch.stack([real, fake], dim=1))
        # eq. (13); the mean over both halves the sum there, as the authors do.
        return (scores - scores.new_tensor([[1.0], [0.0]])).square().mean()

    @staticmethod
    def _update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        # Only the weights to be updated: G's loss also reaches those of D_x, which stay.
        loss.backward(inputs=optimizer.param_groups[0]["params"])
        optimizer.step()

    def _adam(self, network: nn.Module) -> torch.optim.Adam:
        # The fused update is one pass over the weights instead of a dozen.
        trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        return torch.optim.Adam(trained, lr=self.learning_rate, betas=ADAM_BETAS, fused=True)
