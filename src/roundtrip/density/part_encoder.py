"""`PartEncoder`: the posterior of z given a part of a row, as a mixture of Gaussians.

It is trained on rows that the model generates, with cells hidden at random, by the likelihood of
their z: the best fit is then p(z | observed cells), all modes of it. No data are needed. It only
makes proposals, so that densities are right however well it is trained.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from roundtrip.density.blocks import ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.io.progress import tracked
from roundtrip.model.adam import Adam
from roundtrip.model.columns import Columns
from roundtrip.model.core import RoundtripModel
from roundtrip.model.inputs import RowInputs
from roundtrip.model.networks import ResidualMLP
from roundtrip.model.noise import MixedNoise
from roundtrip.parameters import named_seed

COMPONENTS = 6
WIDTH, BLOCKS = 128, 2
STEPS, BATCH = 1_500, 256
RATE, LARGEST_GRADIENT = 2e-3, 2.0
TIMED_STEPS = 30
"""After so many steps the time of all is estimated."""

SMALLEST_SCALE = 0.02
"""Smallest diagonal entry of an inverse Cholesky factor: no component is much wider than z."""


@dataclass(frozen=True)
class PartPosterior:
    """Mixtures of Gaussians, one per row.

    Attributes
    ----------
    log_weights : Tensor
        `(rows, components)`.
    mean : Tensor
        `(rows, components, dim)`.
    whitening : Tensor
        Inverses of the lower Cholesky factors, `(rows, components, dim, dim)`.
    """

    log_weights: Tensor
    mean: Tensor
    whitening: Tensor

    @property
    def factor(self) -> Tensor:
        """Lower Cholesky factors of the covariances, `(rows, components, dim, dim)`."""
        identity = torch.eye(self.mean.shape[-1], dtype=self.mean.dtype, device=self.mean.device)
        return torch.linalg.solve_triangular(self.whitening, identity, upper=False)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density of one z per row, `(rows,)`."""
        dim = z.shape[-1]
        standard = (self.whitening @ (z[:, None] - self.mean)[..., None])[..., 0]
        log_det = self.whitening.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        parts = log_det - 0.5 * standard.square().sum(-1) - 0.5 * dim * math.log(2 * math.pi)
        return torch.logsumexp(self.log_weights + parts, dim=-1)


class PartEncoder(nn.Module):
    """q(z | observed cells): a network of the values, with zeros for missing cells, and the mask.

    Parameters
    ----------
    columns : Columns
        Kinds of the features.
    latent_dim : int
        Dimension of z.
    rng : torch.Generator
        Source of the initial weights.
    """

    def __init__(self, columns: Columns, latent_dim: int, rng: torch.Generator) -> None:
        super().__init__()
        self.latent_dim = latent_dim
        self.inputs = RowInputs(Columns(columns.levels, (True,) * len(columns.levels)))
        entries = latent_dim * (latent_dim + 1) // 2
        self.network = ResidualMLP(
            self.inputs.width,
            COMPONENTS * (1 + latent_dim + entries),
            width=WIDTH,
            blocks=BLOCKS,
            linear_outputs=0,
            rng=rng,
        )
        # Components start apart from each other.
        with torch.no_grad():
            bias = self.network.last.bias.view(COMPONENTS, -1)
            bias[:, 1 : 1 + latent_dim] = 0.5 * torch.randn(COMPONENTS, latent_dim, generator=rng)

    def forward(self, x: Tensor) -> PartPosterior:
        """Return the posterior of `(rows, features)`, NaN for missing cells."""
        outputs = self.network(self.inputs(x).to(self.network.first.weight.dtype))
        return self._posterior(outputs)

    def _posterior(self, outputs: Tensor) -> PartPosterior:
        dim = self.latent_dim
        outputs = outputs.view(len(outputs), COMPONENTS, -1)
        logits, mean, entries = outputs.split([1, dim, dim * (dim + 1) // 2], dim=-1)
        row, column = torch.tril_indices(dim, dim, device=outputs.device)
        scales = softplus(entries + math.log(math.e - 1)) + SMALLEST_SCALE
        whitening = outputs.new_zeros(*outputs.shape[:2], dim, dim)
        whitening[..., row, column] = torch.where(row == column, scales, entries)
        return PartPosterior(logits[..., 0].log_softmax(dim=-1), mean, whitening)

    @torch.no_grad()
    def precise(self, x: Tensor) -> PartPosterior:
        """Return the posterior in float64, in blocks of one shape."""

        def of_block(block: Tensor) -> Tensor:
            return self.network(self.inputs(block).to(self.network.first.weight.dtype))

        return self._posterior(map_blocks(of_block, x, ROWS_PER_ENCODER_CALL).double())


def restored_part_encoder(
    model: RoundtripModel, features: int, state: dict[str, Tensor]
) -> PartEncoder:
    """Rebuild a trained encoder from its state dict, on the CPU."""
    encoder = PartEncoder(columns_of(model, features), model.latent_dim, torch.Generator())
    encoder = encoder.double().requires_grad_(False)
    encoder.load_state_dict(state)
    return encoder


def columns_of(model: RoundtripModel, features: int) -> Columns:
    """Return the kinds of the features of a model."""
    if isinstance(model.noise, MixedNoise):
        return model.noise.columns
    return Columns((None,) * features, (False,) * features)


@torch.enable_grad()
def fit_part_encoder(
    model: RoundtripModel,
    features: int,
    *,
    seed: int,
    steps: int = STEPS,
    seconds: float = math.inf,
    verbose: bool = False,
) -> PartEncoder | None:
    """Train an encoder of parts of rows on what the model generates.

    It depends on the model and the seed alone, whenever it is trained.

    Parameters
    ----------
    model : RoundtripModel
        Model without a context, in evaluation mode.
    features : int
        Number of features.
    seed : int
        Seed of the draws and of the first weights.
    steps : int, default=1500
        Number of steps.
    seconds : float, default=inf
        Time limit. If the first steps show that it would not be met, there is no encoder.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    PartEncoder or None
        The encoder, in float64 for calls.
    """
    start = time.perf_counter()
    device = model.device
    rng = torch.Generator().manual_seed(named_seed(seed, "part encoder") % 2**63)
    numpy_rng = np.random.default_rng(named_seed(seed, "codes of the part encoder"))
    encoder = PartEncoder(columns_of(model, features), model.latent_dim, rng).to(device)
    weights = list(encoder.parameters())
    adam = Adam(weights, lr=RATE)
    for step in tracked(range(steps), "learning to read parts of rows", enabled=verbose):
        with torch.no_grad():
            z = model.prior.sample(BATCH, numpy_rng).to(device)
            x = model.noise.sample(model.decode(z), rng).to(device)
            hidden = torch.rand(x.shape, generator=rng) < torch.rand(BATCH, 1, generator=rng)
            x = x.masked_fill(hidden.to(device), torch.nan)
        adam.lr = RATE * 0.5 * (1 + math.cos(math.pi * step / steps)) * min(1.0, (step + 1) / 50)
        loss = -encoder(x).log_prob(z.float()).mean()
        gradients = torch.autograd.grad(loss, weights)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.nan_to_num()
        nn.utils.clip_grad_norm_(weights, LARGEST_GRADIENT)
        adam.step()
        if step == TIMED_STEPS and (time.perf_counter() - start) / step * steps > seconds:
            return None
    for weight in weights:
        weight.grad = None
        weight.requires_grad_(False)
    return encoder.double()
