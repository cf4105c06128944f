"""`EncoderProposal`: Gaussians around the encoder's posterior, and nets of points from them."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.nets import shifted_nets
from roundtrip.density.proposals import student_t_log_prob
from roundtrip.density.starts.refinement import refined_by_values
from roundtrip.density.weights import encoded_posterior, log_joints
from roundtrip.model.core import RoundtripModel

SCALES, SHARES = (1.0, 1.3, 2.0), (0.7, 0.24, 0.06)
"""Widths of the Gaussians in units of the posterior, and their shares."""

WIDE_SHARE = 0.03
"""Share of a Student t with 2 degrees of freedom, with mean and scale those of the prior. Its tails
are heavier than those of a prior, so that it bounds the weights."""


@dataclass(frozen=True)
class EncoderProposal:
    """Gaussians of several widths around the posterior of each row, and a Student t.

    Attributes
    ----------
    mean, factor : Tensor
        Mean and lower Cholesky factor of q(z | x), `(rows, dim)` and `(rows, dim, dim)`.
    prior_mean, prior_factor : Tensor
        Those of the prior, `(dim,)` and `(dim, dim)`.
    """

    mean: Tensor
    factor: Tensor
    prior_mean: Tensor
    prior_factor: Tensor

    @classmethod
    def of(cls, model: RoundtripModel, x: Tensor) -> "EncoderProposal":
        """Return the proposal of each row of x."""
        prior_mean, prior_factor = (part.to(x.device) for part in model.prior.moments())
        return cls(*encoded_posterior(model, x), prior_mean, prior_factor)

    def __getitem__(self, rows: Tensor) -> "EncoderProposal":
        """Return the proposals of some of the rows."""
        return EncoderProposal(
            self.mean[rows], self.factor[rows], self.prior_mean, self.prior_factor
        )

    def draws(self, cube: Tensor) -> tuple[Tensor, Tensor]:
        """Map points of the unit cube to draws.

        Parameters
        ----------
        cube : Tensor
            Points, `(rows, n, 1 + dim)`. The first coordinate chooses the component.

        Returns
        -------
        z : Tensor
            Draws, `(rows, n, dim)`.
        log_prob : Tensor
            Their log densities, `(rows, n)`.
        """
        scales = cube.new_tensor(SCALES)
        shares = (1 - WIDE_SHARE) * cube.new_tensor(SHARES)
        choice, normal = cube[..., 0].contiguous(), torch.special.ndtri(cube[..., 1:])
        component = torch.searchsorted(shares.cumsum(0), choice)
        offset = normal * scales[component.clamp_max(len(scales) - 1)][..., None]
        # Half a chi-square with 2 degrees of freedom is exponential.
        exponential = -torch.log(((1 - choice) / WIDE_SHARE).clamp_max(1 - 2**-30))[..., None]
        z = torch.where(
            (component == len(scales))[..., None],
            # A product per row, which does not depend on the number of rows.
            self.prior_mean
            + (normal / exponential.sqrt()) @ self.prior_factor.mT.expand(len(normal), -1, -1),
            self.mean[:, None] + offset @ self.factor.mT,
        )
        return z, self.log_prob(z)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density of `(rows, n, dim)` points, `(rows, n)`."""
        dim = self.mean.shape[1]
        scales = z.new_tensor(SCALES)
        shares = (1 - WIDE_SHARE) * z.new_tensor(SHARES)
        inside = standardised(z - self.mean[:, None], self.factor).square().sum(-1)
        log_det = self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)[:, None, None]
        around = shares.log() - dim * scales.log() - log_det - 0.5 * dim * math.log(2 * math.pi)
        parts = around - 0.5 * inside[..., None] / scales.square()
        standard = standardised(z - self.prior_mean, self.prior_factor)
        wide = student_t_log_prob(standard, df=2.0) - self.prior_factor.diagonal().log().sum()
        parts = torch.cat([parts, math.log(WIDE_SHARE) + wide[..., None]], dim=-1)
        return torch.logsumexp(parts, dim=-1)


def net_log_weights(
    model: RoundtripModel,
    x: Tensor,
    proposal: EncoderProposal,
    keys: np.ndarray,
    start: int,
    stop: int,
) -> Tensor:
    """Return the log weights of some points of a net per row, `(rows, stop - start)`."""
    cube = shifted_nets(keys, start, stop, 1 + model.latent_dim, x.device)
    z, log_prob = proposal.draws(cube)
    return log_joints(model, x, z) - log_prob


def refitted(proposal: EncoderProposal, keys: np.ndarray, log_weights: Tensor) -> EncoderProposal:
    """Return proposals that are fitted to the weights of the first points of nets."""
    dim, points = proposal.mean.shape[1], log_weights.shape[1]
    z, log_prob = proposal.draws(shifted_nets(keys, 0, points, 1 + dim, log_weights.device))
    mean, factor = refined_by_values(
        proposal.mean, proposal.factor, z, log_weights + log_prob, log_weights
    )
    return replace(proposal, mean=mean, factor=factor)


def standardised(centred: Tensor, factor: Tensor) -> Tensor:
    """Return `(rows, n, dim)` vectors in units of a Cholesky factor."""
    return torch.linalg.solve_triangular(factor, centred.mT, upper=False).mT
