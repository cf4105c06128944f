"""Initial weights of likelihood training: probabilistic principal components.

Before the first step G is linear along the principal axes of the data, H is the exact posterior of
this linear model, and the noise has the standard deviation that the axes leave unexplained. From
random weights training spends most of its time on the correlations between columns; from this start
it has only nonlinear relations to learn.
"""

import torch
from torch import Tensor

from roundtrip.data import Rows
from roundtrip.model.core import RoundtripModel
from roundtrip.model.inputs import RowInputs
from roundtrip.model.networks import ResidualMLP

SMALLEST_VARIANCE = 1e-4

MOST_ROWS = 10_000
"""Rows that the components of tables with categories or missing cells are made from, at most."""


def has_linear_start(model: RoundtripModel) -> bool:
    """Return whether G and H can start as linear maps, H with a posterior."""
    networks = (model.generator, model.encoder)
    return model.has_posterior and all(isinstance(each, ResidualMLP) for each in networks)


WIDE = 512
"""Number of features from which on tables with fewer rows are taken row by row."""

SPANNED = 1e-12
"""Variance, as a share of the largest, below which an axis is arithmetic error."""


@torch.no_grad()
def start_at_principal_components(
    model: RoundtripModel, rows: Rows, *, noise_share: float = 0.5
) -> None:
    """Set the linear parts of G and H and the width of the noise from training rows.

    With a context, the axes are those of the residuals of a linear regression on the context.

    Parameters
    ----------
    model : RoundtripModel
        Model whose G and H are `ResidualMLP`, H with a posterior.
    rows : Rows
        Training rows.
    noise_share : float, default=0.5
        Variance of the noise in units of that along the last axis, if there is a latent dimension
        for every feature.
    """
    generator, encoder = model.generator, model.encoder
    if not (isinstance(generator, ResidualMLP) and isinstance(encoder, ResidualMLP)):
        raise TypeError("only residual networks can start at principal components")
    data, context = rows.x.double(), rows.context.double()
    if isinstance(model.inputs, RowInputs):
        # An input per level: all rows at once might not fit into memory.
        data, context = data[:MOST_ROWS], context[:MOST_ROWS]
        data = model.inputs(data)[:, : model.inputs.described]
    dim, features = model.latent_dim, data.shape[1]
    mean, context_mean = data.mean(dim=0), context.mean(dim=0)
    # Pseudo-inverse, because the columns of one-hot labels sum to one.
    deviation = context - context_mean
    inverse = torch.linalg.pinv(deviation.mT @ deviation, hermitian=True)
    shift = (inverse @ (deviation.mT @ (data - mean))).mT
    mean = mean - shift @ context_mean
    centred = data - mean - context @ shift.mT
    variances, axes = principal_axes(centred, dim)
    rest = variances[dim:].mean() if dim < features else noise_share * variances[-1]
    noise = rest.clamp_min(SMALLEST_VARIANCE)
    used = min(dim, features)  # further latent dimensions start unused
    explained = variances[:used].clamp_min(1.01 * noise)
    loadings = axes[:, :used] * (explained - noise).sqrt()
    generator.direct.zero_()
    linear = model.noise.linear_outputs()
    slopes = torch.tensor(linear.slopes, dtype=torch.float64, device=data.device)[:, None]
    generator.direct[linear.outputs, :used] = (slopes * loadings[linear.inputs]).float()
    generator.direct[linear.outputs, dim:] = (slopes * shift[linear.inputs]).float()
    is_location = torch.tensor(linear.is_location, device=data.device)
    generator.last.bias[linear.outputs] = torch.where(is_location, mean[linear.inputs], 0.0).float()
    # The posterior of z given x in this model: mean Wᵀ(x - mean)/λ, covariance noise/λ.
    back = (loadings / explained).mT
    widths = torch.ones(dim, dtype=torch.float64, device=data.device)
    widths[:used] = (noise / explained).sqrt()
    encoder.direct.zero_()
    encoder.direct[:used, :features] = back.float()
    of_context = encoder.direct.shape[1] - context.shape[1]
    encoder.direct[:used, of_context:] = -(back @ shift).float()
    encoder.last.bias[:used] = -(back @ mean).float()
    row, column = torch.tril_indices(dim, dim, device=data.device)
    encoder.last.bias[dim:][row == column] = torch.log(torch.expm1(widths)).float()
    model.noise.start(rows.x.double(), noise.sqrt().item())


def principal_axes(centred: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the variances along all principal axes, the largest first, and the first axes.

    Parameters
    ----------
    centred : Tensor
        `(rows, features)`, columns of mean zero.
    count : int
        Number of axes.

    Returns
    -------
    variances : Tensor
        `(features,)`.
    axes : Tensor
        `(features, at least min(count, features))`; zero where there are more than `centred` spans.

    Examples
    --------
    >>> import torch
    >>> variances, axes = principal_axes(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]), 1)
    >>> variances.tolist(), axes[:, 0].abs().tolist()
    ([1.0, 0.0], [1.0, 0.0])
    """
    rows, features = centred.shape
    if features <= max(rows, WIDE):
        variances, axes = torch.linalg.eigh(centred.mT @ centred / rows)
        return variances.flip(0).clamp_min(0), axes.flip(1)
    # A covariance of all features might not fit into memory; that of rows has the same variances.
    inner, of_rows = torch.linalg.eigh(centred @ centred.mT / rows)
    inner, of_rows = inner.flip(0).clamp_min(0), of_rows.flip(1)
    count = min(count, features)
    axes = centred.new_zeros(features, max(count, rows))
    spanned = inner > inner[0] * SPANNED
    axes[:, :rows][:, spanned] = centred.mT @ (of_rows / (rows * inner).sqrt())[:, spanned]
    return torch.cat([inner, inner.new_zeros(features - rows)]), axes
