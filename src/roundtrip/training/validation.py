"""Validation log-likelihood, and the choice of sigma that comes with it for free."""

from collections.abc import Sequence

import torch
from torch import Tensor

from roundtrip.density.importance import importance_over_sigmas
from roundtrip.model import RoundtripModel


class Validation:
    """Mean log-likelihood of held-out rows under the sigma that suits them best.

    Calling it sets `model.sigma` to the best of `sigmas` and returns the mean log-likelihood. The
    draws are the same at every call, so that epochs are compared on equal terms. After epoch
    `selection_epochs` sigma stays what it is (the paper's rule); with None it is chosen anew at
    every call. `log_det` converts the log-likelihood to the user's units.
    """

    def __init__(
        self,
        model: RoundtripModel,
        x: Tensor,
        *,
        sigmas: Sequence[float],
        selection_epochs: int | None,
        n_samples: int,
        scale: float,
        df: float,
        seed: int,
        log_det: float = 0.0,
    ) -> None:
        self.model = model
        self.x = x
        self.sigmas = torch.tensor(list(sigmas), dtype=torch.float64, device=x.device)
        self.selection_epochs = selection_epochs
        self.n_samples = n_samples
        self.scale = scale
        self.df = df
        self.seed = seed
        self.log_det = log_det

    def __call__(self, epoch: int) -> float:
        """Set the model's sigma and return the mean log-likelihood; epochs count from 1."""
        settled = self.selection_epochs is not None and epoch > self.selection_epochs
        sigmas = self.model.sigma[None] if settled else self.sigmas
        self.model.eval()
        log_likelihood = importance_over_sigmas(
            self.model,
            self.x,
            n_samples=self.n_samples,
            scale=self.scale,
            df=self.df,
            sigmas=sigmas,
            seed=self.seed,
        ).mean(dim=0)
        best = int(log_likelihood.argmax())
        self.model.sigma.copy_(sigmas[best])
        return log_likelihood[best].item() + self.log_det
