"""A fitted density under wide noise: a mixture of many equal Gaussians around G(z)."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.data.scaling import Scaling
from roundtrip.density.blocks import map_blocks
from roundtrip.estimator import Roundtrip
from roundtrip.outliers.explanation import Surprises

CENTRES = 4096
ROWS_PER_CALL = 256
NUMBERS_PER_EXPLANATION = 2**20
"""Held at once: a number for each row, code and feature."""


@dataclass(frozen=True)
class BlurredDensity:
    """p(x) = mean over codes z_i of N(x | G(z_i), sigma² I), for a fixed set of codes.

    With noise as wide as the data, a few thousand codes stand for all: what is exact for them is
    the density up to a small common error, and costs no sampling.

    Attributes
    ----------
    centres : `(codes, features)`, G(z_i) in scaled units.
    scaling : from the density's rows to scaled units.
    sigma : standard deviation of the noise.

    >>> centre, same = torch.zeros(1, 2, dtype=torch.float64), Scaling(np.zeros(2), np.ones(2))
    >>> blurred = BlurredDensity(centre, sigma=1.0, scaling=same)
    >>> blurred.log_density(np.zeros((1, 2))).round(3)
    array([-1.838])
    """

    centres: Tensor
    sigma: float
    scaling: Scaling

    @classmethod
    def of(cls, est: Roundtrip, sigma: float) -> "BlurredDensity":
        """The density of a fitted estimator with noise of width `sigma` instead of its own."""
        Z = est.model_.spread_codes(CENTRES, est.scoring_seed_).numpy()
        centres = est.scaling_.apply(est.inverse_transform(Z))
        return cls(torch.from_numpy(centres).to(est.model_.device), sigma, est.scaling_)

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """log p(x) in scaled units of `(rows, features)`, `(rows,)`."""
        lengths = self.centres.square().sum(dim=1)
        constant = self.centres.shape[1] * self._log_width

        def of_block(x: Tensor) -> Tensor:
            squares = x.square().sum(dim=1, keepdim=True) + lengths - 2 * x @ self.centres.mT
            return self._log_mean(-0.5 * squares / self.sigma**2 - constant)

        return map_blocks(of_block, self._tensor(rows), ROWS_PER_CALL).cpu().numpy()

    def surprises(self, rows: np.ndarray) -> Surprises:
        """-log p(x), its parts, and -log p(x_j | others) of `(rows, features)`."""
        features = self.centres.shape[1]

        def of_block(x: Tensor) -> Tensor:
            by_feature = -0.5 * ((x[:, None] - self.centres) / self.sigma).square()
            by_feature -= self._log_width
            whole = by_feature.sum(dim=-1)
            log_density = self._log_mean(whole)[:, None]
            share = torch.softmax(whole, dim=1)  # the posterior of the codes
            residual = -(share[..., None] * by_feature).sum(dim=1)
            latent = -log_density - residual.sum(dim=1, keepdim=True)
            without = [self._log_mean(whole - by_feature[..., j]) for j in range(features)]
            given_others = torch.stack(without, dim=1) - log_density
            return torch.cat([-log_density, residual, latent, given_others], dim=1)

        rows_per_call = max(1, NUMBERS_PER_EXPLANATION // self.centres.numel())
        parts = map_blocks(of_block, self._tensor(rows), rows_per_call).cpu().numpy()
        total, residual, latent, given_others = np.split(
            parts, [1, 1 + features, 2 + features], axis=1
        )
        return Surprises(total[:, 0], residual, latent[:, 0], given_others)

    @property
    def _log_width(self) -> float:
        return math.log(self.sigma * math.sqrt(2 * math.pi))

    def _log_mean(self, exponents: Tensor) -> Tensor:
        return torch.logsumexp(exponents, dim=1) - math.log(len(self.centres))

    def _tensor(self, rows: np.ndarray) -> Tensor:
        return torch.from_numpy(self.scaling.apply(rows)).to(self.centres)
