"""A model that needs no training: G and H are linear, and the prior is a mixture of Gaussians.

With a latent dimension for every feature and little noise, the density is about that of the prior
in whitened coordinates: a Gaussian mixture, or a kernel density estimate with a Gaussian around
every row. On some tables of few rows these are ahead of every trained network, and held-out rows
tell so.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from roundtrip.model.build import build_model
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import Noise
from roundtrip.model.prior import GaussianMixture, MixturePrior
from roundtrip.parameters import Seeds
from roundtrip.training.data import ENOUGH_ROWS, HELD_OUT_PARTS, FittingData
from roundtrip.training.em import MixtureByEM
from roundtrip.training.fitted_prior import MOST_ROWS, drawn_codes, with_normal
from roundtrip.training.objective import FitOptions
from roundtrip.training.principal import has_linear_start, start_at_principal_components

FEWEST_ROWS, MOST_ROWS_OF_TABLE, MOST_FEATURES = 10, 5_000, 24
"""Other tables are left to training."""

MOST_KERNELS = 500
"""Training rows above which kernels are not tried: every row is a component of the prior."""

FEW_ROWS, MOST_FOLDS = 150, 10
"""Tables of fewer rows choose the prior by more folds, which train on nearly all of them."""

COMPONENTS = (1, 2, 3, 4, 6, 8, 12, 16)
ROWS_PER_NUMBER = 2
"""Fewest training rows per number of the mixture."""

MOST_WORSE = 2
"""Numbers of components or widths in a row that may be worse than the best before them."""

REGULARISATION = (1e-3, 3e-2)
"""Variances added to those of the mixture, in units of the variance of all codes."""

KERNEL_WIDTHS = tuple(np.geomspace(1.2, 0.2, 9))
"""In units of Scott's rule, n^(-1 / (d + 4))."""

NOISE_SHARE = 0.002
"""Variance of the noise, in units of that along the last principal axis."""

WIDE = 3.0
"""Width of the normal distribution that is part of the prior, for rows far from all others."""

Recipe = Callable[[np.ndarray], GaussianMixture]
"""A way to make a prior from codes `(rows, latent_dim)`."""


@dataclass(frozen=True)
class LinearMixture:
    """A linear model and what it is worth.

    Attributes
    ----------
    model, noise : RoundtripModel, Noise
        The model, and the settings of its noise.
    score : float
        Mean log-likelihood of held-out rows.
    """

    model: RoundtripModel
    noise: Noise
    score: float


def fit_linear_mixture(
    options: FitOptions,
    data: FittingData,
    splits: Sequence[FittingData],
    *,
    seeds: Seeds,
    seconds: float | None,
) -> LinearMixture | None:
    """Fit the linear model whose prior is best on held-out rows.

    There is none if the fit is interrupted by Ctrl-C or fails, so that the training is not lost.

    Parameters
    ----------
    options : FitOptions
        Components and numbers of the fit.
    data : FittingData
        Training and validation rows.
    splits : sequence of FittingData
        Folds that training was validated on, on which the model is scored.
    seeds : Seeds
        Seeds of the random streams.
    seconds : float or None
        Time limit of the choice.

    Returns
    -------
    LinearMixture or None
        The model; None if the options or the size of the table do not allow such a model.
    """
    try:
        return _fit_linear_mixture(options, data, splits, seeds, seconds)
    except (KeyboardInterrupt, ValueError, np.linalg.LinAlgError):
        return None


def _fit_linear_mixture(
    options: FitOptions,
    data: FittingData,
    splits: Sequence[FittingData],
    seeds: Seeds,
    seconds: float | None,
) -> LinearMixture | None:
    features = data.features
    # Of the variants of the noise the one that starts with the fewest boxes: they would blur it.
    options = replace(options, noise=options.noise.variants[-1], latent_dim=features)
    if (
        not FEWEST_ROWS <= data.n_rows <= MOST_ROWS_OF_TABLE
        or features > MOST_FEATURES
        or data.training.context_dim
        or data.image_shape is not None
        or data.columns is not None
        or not isinstance(options.prior, MixturePrior)
    ):
        return None
    deadline = math.inf if seconds is None else time.perf_counter() + seconds
    first = _linear_model(options, splits[0], seeds)
    if not has_linear_start(first):
        return None
    folds = splits
    if not data.own_validation and data.n_rows < ENOUGH_ROWS:
        folds = data.folds(MOST_FOLDS if data.n_rows < FEW_ROWS else HELD_OUT_PARTS)
    chosen = _best_recipe(options, folds, seeds, deadline)
    if chosen is None:
        return None
    models = [_with_prior(options, split, chosen, seeds) for split in splits]
    scores = [
        options.objective.validator(model, split, options, seeds["validation"])(0)
        for model, split in zip(models, splits, strict=True)
    ]
    model = models[0]
    if not data.own_validation:
        model = _with_prior(options, data.all_rows, chosen, seeds)
    return LinearMixture(model.eval(), options.noise, float(np.mean(scores)))


def _best_recipe(
    options: FitOptions, folds: Sequence[FittingData], seeds: Seeds, deadline: float
) -> Recipe | None:
    """Return the way to make a prior under which held-out codes are likeliest."""
    assert isinstance(options.prior, MixturePrior)
    codes = [_codes_of(_linear_model(options, fold, seeds), fold, seeds) for fold in folds]
    fewest = min(len(training) for training, _ in codes)
    best, chosen = -math.inf, None
    for family in _families(fewest, folds[0].features, options.prior.components, seeds["prior"]):
        best_of_family, worse = -math.inf, 0
        for recipe in family:
            if worse == MOST_WORSE or time.perf_counter() > deadline:
                break
            try:
                score = float(np.mean([_held_out_log_prob(recipe, *each) for each in codes]))
            except (ValueError, np.linalg.LinAlgError):
                break
            worse = 0 if score > best_of_family else worse + 1
            best_of_family = max(score, best_of_family)
            if score > best:
                best, chosen = score, recipe
    return chosen


def _with_prior(
    options: FitOptions, data: FittingData, recipe: Recipe, seeds: Seeds
) -> RoundtripModel:
    """Return the linear model of the training rows with its prior."""
    model = _linear_model(options, data, seeds)
    model.prior = recipe(_codes_of(model, data, seeds)[0]).to(model.device)
    return model


def _linear_model(options: FitOptions, data: FittingData, seeds: Seeds) -> RoundtripModel:
    """Return the model before training, linear if its networks can start as linear maps."""
    device = data.training.device
    model = build_model(
        data.sizes(data.features),
        network=options.network,
        noise=options.noise,
        prior=options.prior,
        has_posterior=options.objective.has_posterior,
        floor=data.noise_floor.cpu(),
        rng=torch.Generator().manual_seed(seeds["linear-mixture/weights"]),
    ).to(device)
    if has_linear_start(model):
        rng = torch.Generator(device).manual_seed(seeds["linear-mixture/training"])
        rows = data.spread(data.training, rng)
        start_at_principal_components(model, rows, noise_share=NOISE_SHARE)
    return model


def _codes_of(
    model: RoundtripModel, data: FittingData, seeds: Seeds
) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of training and of validation rows, one draw of q(z | x) each."""
    rng = torch.Generator(model.device).manual_seed(seeds["prior"])
    training, held_out = (
        drawn_codes(model, rows, rng) for rows in data.as_trained(MOST_ROWS, seeds["prior"])
    )
    return training, held_out


def _held_out_log_prob(recipe: Recipe, training: np.ndarray, held_out: np.ndarray) -> float:
    """Return the mean log p(z) of held-out codes."""
    return recipe(training).log_prob(torch.from_numpy(held_out)).mean().item()


def _families(rows: int, dim: int, most_components: int, seed: int) -> Iterator[Iterator[Recipe]]:
    """Return kinds of priors, each in the order of its number of components or width."""
    for regularisation in REGULARISATION:
        for kind in ("tied", "full"):
            yield (
                _mixture(components, kind, regularisation, seed)
                for components in COMPONENTS
                if components <= most_components
                and rows >= ROWS_PER_NUMBER * _numbers(components, kind, dim)
            )
    if rows <= MOST_KERNELS and most_components >= MixturePrior().components:
        yield (_kernels(width) for width in KERNEL_WIDTHS)


def _numbers(components: int, kind: str, dim: int) -> float:
    """Return how many numbers a mixture has."""
    covariances = 1 if kind == "tied" else components
    return components * (dim + 1) + covariances * dim * (dim + 1) / 2


def _mixture(components: int, kind: str, regularisation: float, seed: int) -> Recipe:
    def fit(codes: np.ndarray) -> GaussianMixture:
        em = MixtureByEM(
            components,
            covariance_type=kind,
            reg_covar=regularisation,
            random_state=seed % 2**32,
        )
        em.fit(codes)
        covariances = em.covariances_
        if kind == "tied":
            covariances = np.repeat(covariances[None], components, axis=0)
        return with_normal(em.weights_, em.means_, covariances, width=WIDE)

    return fit


def _kernels(width: float) -> Recipe:
    def place(codes: np.ndarray) -> GaussianMixture:
        rows, dim = codes.shape
        variance = (width * rows ** (-1 / (dim + 4))) ** 2
        covariances = np.broadcast_to(variance * np.eye(dim), (rows, dim, dim))
        return with_normal(np.full(rows, 1 / rows), codes, covariances, width=WIDE)

    return place
