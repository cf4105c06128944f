"""A fitted density under wide noise: a mixture of many equal Gaussians around G(z)."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.blocks import map_blocks
from roundtrip.density.fitted import FittedDensity
from roundtrip.outliers.explanation import Surprises

CENTRES = 4096
ROWS_PER_CALL = 256
NUMBERS_PER_EXPLANATION = 2**20
"""Largest number of values (rows x codes x features) held in memory at once."""


@dataclass(frozen=True)
class BlurredDensity:
    """p(x) = mean over codes z_i of N(x | G(z_i), sigma² I), for a fixed set of codes.

    With noise as wide as the data, a few thousand codes represent the whole prior: the exact mean
    over them is the density up to a small error that all rows share, without sampling.

    Attributes
    ----------
    centres : Tensor
        `(codes, features)`, G(z_i) in scaled units.
    sigma : float
        Standard deviation of the noise.

    Examples
    --------
    >>> blurred = BlurredDensity(torch.zeros(1, 2, dtype=torch.float64), sigma=1.0)
    >>> blurred.log_density(torch.zeros(1, 2)).round(3)
    array([-1.838])
    """

    centres: Tensor
    sigma: float

    @classmethod
    def of(cls, fitted: FittedDensity, sigma: float) -> "BlurredDensity":
        """Replace the noise of a fitted density by one of standard deviation `sigma`."""
        z = fitted.model.prior.spread(CENTRES, fitted.seed)
        context = fitted.schema.encoded_context(None, CENTRES)
        return cls(fitted.generate(z, context).double(), sigma)

    def log_density(self, x: Tensor) -> np.ndarray:
        """log p(x) of rows in scaled units, `(rows, features)` to `(rows,)`."""
        lengths = self.centres.square().sum(dim=1)
        constant = self.centres.shape[1] * self._log_width

        def of_block(x: Tensor) -> Tensor:
            squares = x.square().sum(dim=1, keepdim=True) + lengths - 2 * x @ self.centres.mT
            return self._log_mean(-0.5 * squares / self.sigma**2 - constant)

        return map_blocks(of_block, x.to(self.centres), ROWS_PER_CALL).cpu().numpy()

    def surprises(self, x: Tensor) -> Surprises:
        """-log p(x), its parts, and -log p(x_j | others) of `(rows, features)` in scaled units."""
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
        parts = map_blocks(of_block, x.to(self.centres), rows_per_call).cpu().numpy()
        total, residual, latent, given_others = np.split(
            parts, [1, 1 + features, 2 + features], axis=1
        )
        return Surprises(total[:, 0], residual, latent[:, 0], given_others)

    @property
    def _log_width(self) -> float:
        return math.log(self.sigma * math.sqrt(2 * math.pi))

    def _log_mean(self, exponents: Tensor) -> Tensor:
        return torch.logsumexp(exponents, dim=1) - math.log(len(self.centres))
