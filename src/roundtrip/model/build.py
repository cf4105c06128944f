"""`build_model`: a new model from its components."""

from dataclasses import replace

import torch
from torch import Tensor

from roundtrip.model.core import RoundtripModel, posterior_outputs
from roundtrip.model.networks import Network, Sizes
from roundtrip.model.noise import Noise
from roundtrip.model.prior import Prior


def build_model(
    sizes: Sizes,
    *,
    network: Network,
    noise: Noise,
    prior: Prior,
    has_posterior: bool,
    floor: Tensor | None = None,
    rng: torch.Generator,
) -> RoundtripModel:
    """Build a model with new networks, noise and prior, on the CPU.

    Parameters
    ----------
    sizes : Sizes
        Sizes of rows, codes and context.
    network, noise, prior : Network, Noise, Prior
        The components.
    has_posterior : bool
        Whether H gives a distribution q(z | x). Otherwise it gives a point, and the context does
        not enter it, as in the paper.
    floor : Tensor, default=None
        Smallest width of the noise, `(features,)`. None is 0.
    rng : torch.Generator
        Source of the initial weights.

    Returns
    -------
    RoundtripModel
        The model.

    Examples
    --------
    >>> from roundtrip.model.networks import MLP
    >>> from roundtrip.model.noise import Isotropic
    >>> from roundtrip.model.prior import NormalPrior
    >>> model = build_model(Sizes(features=3, latent_dim=2), network=MLP(), noise=Isotropic(),
    ...                     prior=NormalPrior(), has_posterior=False, rng=torch.Generator())
    >>> model.generate(torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """
    observation = noise.build(
        sizes.features, torch.zeros(sizes.features, dtype=torch.float64) if floor is None else floor
    )
    code = posterior_outputs(sizes.latent_dim) if has_posterior else sizes.latent_dim
    encoder_sizes = sizes if has_posterior else replace(sizes, context_dim=0)
    generator = network.generator(sizes, observation.n_outputs, rng=rng)
    encoder = network.encoder(encoder_sizes, code, rng=rng)
    return RoundtripModel(
        generator,
        encoder,
        sizes.latent_dim,
        noise=observation,
        has_posterior=has_posterior,
        context_dim=sizes.context_dim,
        encodes_context=has_posterior,
        prior=prior.build(sizes.latent_dim),
    )
