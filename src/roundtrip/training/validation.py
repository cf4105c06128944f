"""Validation log-likelihood; for the paper's noise the choice of sigma comes with it for free."""

from collections.abc import Sequence

import torch

from roundtrip.data import Rows
from roundtrip.density.importance import importance_over_sigmas
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import ConstantGaussian
from roundtrip.training.bound import importance_weighted_bound

ROWS_PER_CALL = 64


class SigmaValidation:
    """Mean log-likelihood of held-out rows under the sigma that suits them best.

    Calling it sets `model.sigma` to the best of `sigmas` and returns the mean log-likelihood. The
    draws are the same at every call, so that epochs are compared on equal terms. After epoch
    `selection_epochs` sigma stays what it is (the paper's rule); with None it is chosen anew at
    every call. `log_det` converts the log-likelihood to the user's units.
    """

    def __init__(
        self,
        model: RoundtripModel,
        rows: Rows,
        *,
        sigmas: Sequence[float],
        selection_epochs: int | None,
        draws: int,
        scale: float,
        df: float,
        seed: int,
        log_det: float = 0.0,
    ) -> None:
        self.model = model
        self.rows = rows
        self.sigmas = torch.tensor(list(sigmas), dtype=torch.float64, device=rows.device)
        self.selection_epochs = selection_epochs
        self.draws = draws
        self.scale = scale
        self.df = df
        self.seed = seed
        self.log_det = log_det

    def __call__(self, epoch: int) -> float:
        """Set the model's sigma and return the mean log-likelihood; epochs count from 1."""
        settled = self.selection_epochs is not None and epoch > self.selection_epochs
        noise = self.model.noise
        assert isinstance(noise, ConstantGaussian)  # the only noise with a sigma to choose
        sigmas = noise.sigma.detach()[None] if settled else self.sigmas
        self.model.eval()
        log_likelihood = importance_over_sigmas(
            self.model,
            self.rows,
            n_samples=self.draws,
            scale=self.scale,
            df=self.df,
            sigmas=sigmas,
            seed=self.seed,
        ).mean(dim=0)
        best = int(log_likelihood.argmax())
        noise.set_sigma(sigmas[best].item())
        return log_likelihood[best].item() + self.log_det

    def report(self) -> dict[str, float]:
        """What validation chose."""
        return {"sigma": self.model.sigma.item()}


class BoundValidation:
    """Mean importance-weighted bound of held-out rows, with the same draws at every call.

    `log_det` converts it to the user's units.
    """

    selection_epochs: int | None = None

    def __init__(
        self, model: RoundtripModel, rows: Rows, *, draws: int, seed: int, log_det: float = 0.0
    ) -> None:
        self.model = model
        self.rows = rows
        self.draws = draws
        self.seed = seed
        self.log_det = log_det

    @torch.no_grad()
    def __call__(self, epoch: int) -> float:
        """Return the mean bound, a little below the log-likelihood."""
        self.model.eval()
        rng = torch.Generator(self.rows.device).manual_seed(self.seed)
        bounds = [
            importance_weighted_bound(self.model, block, n_draws=self.draws, rng=rng).double()
            for block in self.rows.split(ROWS_PER_CALL)
        ]
        return torch.cat(bounds).mean().item() + self.log_det

    def report(self) -> dict[str, float]:
        """Nothing is chosen."""
        return {}
