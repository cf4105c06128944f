"""First proposals for parts of rows, from an encoder of parts."""

import torch
from torch import Tensor

from roundtrip.density.part_encoder import PartEncoder

SCALES, SHARES = (1.1, 2.0), (0.85, 0.15)
"""Widths of the components in units of the encoder's, and their shares."""

PART_EVALUATIONS = 1


def part_components(
    encoder: PartEncoder, x: Tensor
) -> tuple[list[tuple[Tensor, Tensor]], Tensor, Tensor]:
    """Return components around the encoder's mixture, their weights and what they cost.

    Parameters
    ----------
    encoder : PartEncoder
        The encoder.
    x : Tensor
        Rows in scaled units, `(rows, features)`, NaN for missing cells.

    Returns
    -------
    components : list of tuple of Tensor
        Means, `(rows, latent_dim)`, and Cholesky factors, `(rows, latent_dim, latent_dim)`.
    weights : Tensor
        Weights of the components, `(rows, components)`.
    evaluations : Tensor
        Evaluations of G per row, `(rows,)`; one of H counts as one of G.
    """
    posterior = encoder.precise(x)
    each = list(zip(posterior.mean.unbind(1), posterior.factor.unbind(1), strict=True))
    components = [(mean, scale * factor) for scale in SCALES for mean, factor in each]
    weights = posterior.log_weights.exp()
    weights = torch.cat([share * weights for share in SHARES], dim=1)
    evaluations = torch.full((len(x),), PART_EVALUATIONS, device=x.device)
    return components, weights, evaluations
