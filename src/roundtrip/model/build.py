"""`build_model`: a new model from its components."""

from dataclasses import replace

import torch
from torch import Tensor

from roundtrip.model.core import RoundtripModel, posterior_outputs
from roundtrip.model.inputs import RowInputs
from roundtrip.model.networks import Network, Sizes
from roundtrip.model.noise import MixedNoise, Noise, ObservationModel
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
    columns, inputs = sizes.columns, None
    if floor is None:
        floor = torch.zeros(sizes.features, dtype=torch.float64)
    if columns is None:
        observation: ObservationModel = noise.build(sizes.features, floor)
        generator_sizes = encoder_sizes = sizes
    else:
        numbers = columns.numbers
        of_numbers = noise.build(len(numbers), floor[numbers]) if numbers else None
        observation, inputs = MixedNoise(columns, of_numbers), RowInputs(columns)
        # Networks only see how many numbers they take and give.
        generator_sizes = replace(sizes, features=len(numbers), columns=None)
        encoder_sizes = replace(sizes, features=inputs.width, columns=None)
    code = posterior_outputs(sizes.latent_dim) if has_posterior else sizes.latent_dim
    if not has_posterior:
        encoder_sizes = replace(encoder_sizes, context_dim=0)
    generator = network.generator(generator_sizes, observation.n_outputs, rng=rng)
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
        inputs=inputs,
        outside_share=noise.outside_share,
    )
