"""Validation log-likelihood after each epoch, eq. (5), and the paper's choice of sigma by it."""

from collections.abc import Sequence

import torch

from roundtrip.data import Rows
from roundtrip.density.importance import importance_over_sigmas
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import ConstantGaussian
from roundtrip.training.bound import importance_weighted_bound

ROWS_PER_CALL = 64


class SigmaValidation:
    """Mean log-likelihood of held-out rows, eq. (5), at the best sigma.

    A call sets sigma of the model to the best candidate and returns the mean log-likelihood. All
    candidates share the evaluations of G. The draws are the same in every call, so that epochs are
    comparable.

    Parameters
    ----------
    model : RoundtripModel
        Model with isotropic noise.
    rows : Rows
        Held-out rows.
    sigmas : sequence of float
        Candidates for sigma.
    selection_epochs : int or None
        Number of epochs after which sigma is fixed, as in the paper. With None every call chooses
        sigma.
    draws : int
        Draws of z per row.
    scale, df : float
        Scale and degrees of freedom of the Student-t proposal.
    seed : int
        Seed of the draws.
    log_det : float, default=0.0
        Log-determinant of the scaling, which converts the result to the user's units.
    """

    scores_start = False
    """The paper's networks start at random, and their validation takes long."""

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
        """Return the chosen sigma."""
        return {"sigma": self.model.sigma.item()}


class CrossValidated:
    """Scores that cross-validation has found for every epoch, for a training on all rows.

    Parameters
    ----------
    scores : sequence of float
        Mean log-likelihood of held-out rows before the first step and after each epoch.

    Examples
    --------
    >>> CrossValidated([-3.0, -2.5])(1)
    -2.5
    """

    selection_epochs: int | None = None
    scores_start = True

    def __init__(self, scores: Sequence[float]) -> None:
        self.scores = scores

    def __call__(self, epoch: int) -> float:
        """Return the score of an epoch."""
        return self.scores[epoch]

    def report(self) -> dict[str, float]:
        """Return an empty dict: nothing is chosen."""
        return {}


class BoundValidation:
    """Mean importance-weighted bound of held-out rows, with the same draws in every call.

    Parameters
    ----------
    model : RoundtripModel
        Model whose encoder gives a posterior.
    rows : Rows
        Held-out rows, as the encoder takes them.
    draws : int
        Draws of z per row.
    seed : int
        Seed of the draws.
    log_det : float, default=0.0
        Log-determinant of the scaling, which converts the result to the user's units.
    scores_start : bool, default=True
        Whether the model before the first step is scored, as epoch 0.
    """

    selection_epochs: int | None = None

    def __init__(
        self,
        model: RoundtripModel,
        rows: Rows,
        *,
        draws: int,
        seed: int,
        log_det: float = 0.0,
        scores_start: bool = True,
    ) -> None:
        self.scores_start = scores_start
        self.model = model
        self.rows = rows
        self.draws = draws
        self.seed = seed
        self.log_det = log_det

    @torch.no_grad()
    def __call__(self, epoch: int) -> float:
        """Return the mean bound, which is slightly below the log-likelihood."""
        self.model.eval()
        rng = torch.Generator(self.rows.device).manual_seed(self.seed)
        bounds = [
            importance_weighted_bound(self.model, block, n_draws=self.draws, rng=rng).double()
            for block in self.rows.split(ROWS_PER_CALL)
        ]
        return torch.cat(bounds).mean().item() + self.log_det

    def report(self) -> dict[str, float]:
        """Return an empty dict: nothing is chosen."""
        return {}
