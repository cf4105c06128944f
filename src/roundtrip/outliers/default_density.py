"""The density that a detector fits by default, and the noise it scores with."""

from typing import Any, Literal

from roundtrip.estimator import Roundtrip
from roundtrip.model.networks import Residual
from roundtrip.model.noise import LARGEST_SIGMA, SMALLEST_SIGMA, Isotropic
from roundtrip.options import fit_options
from roundtrip.parameters import check_number
from roundtrip.training import Likelihood

SIGMA = 4.0
"""Noise that rows are scored with if columns have a standard deviation of 1: so wide that a small
cluster of outliers adds little to the density. Chosen with planted outliers (docs/outliers.md)."""

MOST_LATENT = 10
"""Largest latent dimension of the default density."""

MOST_ROWS = 20_000
"""Rows that the default density is fitted to, at most: under wide noise more change nothing."""


def default_density(features: int) -> Roundtrip:
    """Make a density that is small and quick to fit, as wide noise hides details.

    >>> default_density(3).noise
    Isotropic(sigma=0.3)
    """
    return Roundtrip(
        latent_dim=min(features, MOST_LATENT),
        objective=Likelihood(batch_size=512, min_steps_per_epoch=100),
        noise=Isotropic(sigma=0.3),
        network=Residual(width=64, blocks=2),
        prior="normal",
        scale=None,
        dequantize=False,
        max_epochs=5,
        tol=0.1,
        part_encoder=False,
    )


def density_of_any_kind(device: Any = "auto") -> Roundtrip:
    """Make a density of tables with categories or missing cells, with its own noise.

    >>> density_of_any_kind().max_epochs
    20
    """
    return Roundtrip(
        network=Residual(width=64),
        objective=Likelihood(batch_size=512, min_steps_per_epoch=50),
        max_epochs=20,
        tol=0.1,
        part_encoder=False,
        device=device,
    )


def check_scoring_sigma(sigma: float | Literal["auto"] | None, estimator: Roundtrip | None) -> None:
    """Raise a `ValueError` if `sigma` is not a number in range, or the noise is not isotropic."""
    if sigma is None or sigma == "auto":
        return
    check_number('sigma, unless "auto" or None,', sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
    if estimator is not None:
        noise = fit_options(estimator.get_params(deep=False)).noise
        if not isinstance(noise, Isotropic):
            raise ValueError(
                f"sigma={sigma:g} needs a density with isotropic noise, not noise={noise!r}; "
                "sigma=None scores by the density as it is"
            )


def scoring_sigma(
    sigma: float | Literal["auto"] | None, estimator: Roundtrip | None, gaussian_columns: bool
) -> float | None:
    """Standard deviation of the noise to score with; None for the density's own noise."""
    if sigma != "auto":
        return sigma
    if estimator is None:
        return SIGMA
    scaled = estimator.scale == "standard" or (estimator.scale is None and gaussian_columns)
    noise = fit_options(estimator.get_params(deep=False)).noise
    return SIGMA if scaled and isinstance(noise, Isotropic) else None
