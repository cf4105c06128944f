"""The Roundtrip model, eq. (4): a generator G, an encoder H, a prior and an observation model."""

import copy
import math
from collections.abc import Mapping
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from roundtrip.model.inputs import FilledInputs, RowInputs
from roundtrip.model.noise import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    ConstantGaussian,
    Limit,
    Limited,
    ObservationModel,
    Observed,
    Unseen,
)
from roundtrip.model.prior import LatentDistribution, StandardNormal
from roundtrip.parameters import check_integer, check_number

SMALLEST_POSTERIOR_WIDTH = 1e-4


class RoundtripModel(nn.Module):
    """p(x) = ∫ p(x | z) p(z) dz, eq. (4), where G(z) describes p(x | z) and H maps x back to z.

    G and H can be any modules. Density estimates use them in evaluation mode. A context c is
    appended to z in the input of G and to x in the input of H.

    Parameters
    ----------
    generator : torch.nn.Module
        G, from `(rows, latent_dim + context_dim)` to `(rows, features)`, or to
        `(rows, noise.n_outputs)` if a `noise` is given.
    encoder : torch.nn.Module
        H, from `(rows, features + context_dim)` to `(rows, latent_dim)`, or to
        `(rows, posterior_outputs(latent_dim))` if `has_posterior`.
    latent_dim : int
        Dimension m of z; smaller than, equal to or larger than the number of features.
    sigma : float, default=None
        Standard deviation of the paper's noise N(x | G(z), sigma² I), eq. (3).
    noise : ObservationModel, default=None
        Observation model, given instead of `sigma`.
    has_posterior : bool, default=False
        Whether H gives a Gaussian q(z | x); otherwise it gives a point.
    context_dim : int, default=0
        Length of the context c that p(x | c) is conditioned on; 0 without a context.
    encodes_context : bool, default=True
        Whether c enters H. In the paper it does not.
    prior : LatentDistribution, default=None
        Distribution p(z). None is N(0, I), as in the paper.
    inputs : RowInputs or FilledInputs, default=None
        Map from rows with categories or missing cells to the numbers that H takes. None if rows
        enter H as they are.
    outside_share : float, default=0.0
        Share of rows that lie outside of the data: no z describes them, but the
        `outside_outputs` of the noise.

    Examples
    --------
    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2), 2, sigma=0.1)
    >>> model.generate(torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    inputs: RowInputs | FilledInputs | None

    def __init__(
        self,
        generator: nn.Module,
        encoder: nn.Module,
        latent_dim: int,
        sigma: float | None = None,
        *,
        noise: ObservationModel | None = None,
        has_posterior: bool = False,
        context_dim: int = 0,
        encodes_context: bool = True,
        prior: LatentDistribution | None = None,
        inputs: RowInputs | FilledInputs | None = None,
        outside_share: float = 0.0,
    ) -> None:
        super().__init__()
        for name, network in (("generator", generator), ("encoder", encoder)):
            if not isinstance(network, nn.Module):
                raise TypeError(f"{name} must be a torch.nn.Module, got {type(network).__name__}")
        if (sigma is None) == (noise is None):
            raise ValueError("give either sigma, for the paper's noise, or noise")
        self.generator = generator
        self.encoder = encoder
        self.latent_dim = check_integer("latent_dim", latent_dim, minimum=1)
        if noise is None:
            sigma = check_number("sigma", sigma, above=SMALLEST_SIGMA, below=LARGEST_SIGMA)
            # One sigma serves any number of features.
            noise = ConstantGaussian(1, sigma=sigma)
        if not 0 <= outside_share < 1:
            raise ValueError(f"outside_share must be at least 0 and below 1, got {outside_share!r}")
        if outside_share and noise.outside_outputs() is None:
            raise ValueError(
                f"outside_share is {outside_share}, but {type(noise).__name__} has no "
                "outside_outputs(), which describe rows outside of the data (docs/extending.md)"
            )
        self.noise = noise
        self.has_posterior = has_posterior
        self.outside_share = outside_share
        self.context_dim = context_dim
        self.encodes_context = encodes_context
        self.prior = StandardNormal(self.latent_dim) if prior is None else prior
        self.register_module("inputs", inputs)

    @property
    def device(self) -> torch.device:
        """Device of the networks."""
        return next(self.parameters()).device

    @property
    def sigma(self) -> Tensor:
        """Standard deviation of noise whose width does not depend on z: `()` or `(features,)`."""
        sigma = self.noise.sigma
        if sigma is None:
            raise ValueError(f"{type(self.noise).__name__} has no sigma: its width depends on z")
        return sigma.detach()

    def with_sigma(self, sigma: float) -> Self:
        """Return a model with the same networks and the paper's noise of width `sigma`."""
        other = self._with("noise", ConstantGaussian(1, sigma=sigma).to(self.device))
        other.outside_share = 0.0
        return other

    def without(self, unseen: Tensor) -> Self:
        """Return the model of the features that are not `unseen`, a `(features,)` mask.

        Its rows still have all features. The values of unseen features only enter H.
        """
        return self._with("noise", Unseen(self.noise, unseen.to(self.device)))

    def observed(self, typical: Tensor) -> Self:
        """Return the model of rows of numbers with missing cells, which are NaN.

        `typical` values, `(features,)`, take the place of missing cells in the input of H.
        """
        other = self._with("noise", Observed(self.noise))
        return other._with("inputs", FilledInputs(typical.to(self.device)))

    def limited(self, limits: Mapping[int, Limit]) -> Self:
        """Return the model of rows some of whose missing cells are known to lie in limits."""
        return self._with("noise", Limited(self.noise, limits)) if limits else self

    def with_precise_encoder(self) -> Self:
        """Return the same model with its encoder in float64.

        A matrix product may round a row differently at another position in a block. In float32 this
        would change the density of the row. The encoder is called once per row, so that float64
        costs little.
        """
        return self._with("encoder", copy.deepcopy(self.encoder).double())

    def _with(self, name: str, part: nn.Module) -> Self:
        other = copy.copy(self)
        other._modules = {**self._modules, name: part}
        return other

    def given(self, context: Tensor) -> "RoundtripModel":
        """Return the model of p(x | context) for one context, `(context_dim,)`, as one without."""
        encoder = Conditioned(self.encoder, context) if self.encodes_context else self.encoder
        return RoundtripModel(
            Conditioned(self.generator, context),
            encoder,
            self.latent_dim,
            noise=self.noise,
            has_posterior=self.has_posterior,
            prior=self.prior,
            inputs=self.inputs,
            outside_share=self.outside_share,
        )

    def decode(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        """Return the parameters of p(x | z) that G computes from z, `(rows, noise.n_outputs)`."""
        return self.generator(beside(z, context).to(dtype_of(self.generator)))

    def outputs_of(self, codes: Tensor, context: Tensor | None = None) -> Tensor:
        """Return the parameters of p(x | z); codes that are NaN stand for rows outside the data."""
        outputs = self.decode(codes.nan_to_num(nan=0.0), context)
        outside = codes.isnan().any(dim=-1, keepdim=True)
        if not outside.any():
            return outputs
        return torch.where(outside, self._outside_outputs(outputs), outputs)

    def sample_codes(self, count: int, rng: np.random.RandomState) -> Tensor:
        """Draw z, `(count, latent_dim)`, for rows of p(x); NaN for those outside the data."""
        z = self.prior.sample(count, rng).to(self.device)
        if self.outside_share:
            outside = torch.from_numpy(rng.random_sample(count) < self.outside_share)
            z = z.masked_fill(outside.to(z.device)[:, None], math.nan)
        return z

    def log_outside(self, x: Tensor) -> Tensor:
        """Return the log of what rows outside the data add to p(x), `(rows,)` float64.

        It is -inf if the model has no such rows.
        """
        if not self.outside_share:
            return torch.full_like(x[:, 0], -math.inf, dtype=torch.float64)
        return math.log(self.outside_share) + self.outside_factors(x).sum(-1)

    def outside_factors(self, x: Tensor) -> Tensor:
        """Return log p(x_j | outside the data), `(rows, features)` float64."""
        outputs = self._outside_outputs(x).expand(len(x), -1)
        return self.noise.log_prob(outputs, x.double())

    def _outside_outputs(self, like: Tensor) -> Tensor:
        outputs = self.noise.outside_outputs()
        assert outputs is not None
        return outputs.to(like)

    def generate(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        """Return E(x | z), G(z) in the paper: `(rows, latent_dim)` → `(rows, features)`."""
        return self.noise.mean(self.decode(z, context))

    def encode(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """Return H(x): `(rows, features)` → `(rows, latent_dim)`.

        In general H(x) maximises neither p(x | z) nor p(x, z).
        """
        outputs = self._encoded(x, context)
        return outputs[:, : self.latent_dim] if self.has_posterior else outputs

    def _encoded(self, x: Tensor, context: Tensor | None) -> Tensor:
        values = x if self.inputs is None else self.inputs(x)
        inputs = beside(values, context) if self.encodes_context else values
        return self.encoder(inputs.to(dtype_of(self.encoder)))

    def posterior(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the mean of q(z | x) and the lower Cholesky factor of its covariance.

        Their shapes are `(rows, latent_dim)` and `(rows, latent_dim, latent_dim)`.
        """
        if not self.has_posterior:
            raise ValueError("this encoder gives a point, not a distribution of z")
        dim = self.latent_dim
        outputs = self._encoded(x, context)
        mean, entries = outputs.split([dim, posterior_outputs(dim) - dim], dim=1)
        row, column = torch.tril_indices(dim, dim, device=x.device)
        widths = softplus(entries) + SMALLEST_POSTERIOR_WIDTH
        entries = torch.where(row == column, widths, entries)
        factor = outputs.new_zeros(len(x), dim, dim)
        factor[:, row, column] = entries
        return mean, factor

    def as_observed(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """Return generated rows with cells missing as often as among training rows."""
        return x if self.inputs is None else self.inputs.as_observed(x, rng)

    def knows_pattern(self, x: Tensor) -> Tensor:
        """Return which rows miss only cells that were missing in training, too, `(rows,)`."""
        if self.inputs is None:
            return ~x.isnan().any(dim=1)
        return self.inputs.known_pattern(x)

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x | z), one value per row, in float64."""
        return self.noise.log_prob(self.decode(z).double(), x.double()).sum(-1)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x, z) = log p(x | z) + log p(z), the integrand of eq. (4), in float64."""
        return self.log_likelihood(x, z) + self.prior.log_prob(z)


class Conditioned(nn.Module):
    """A network with the same context for all rows.

    Parameters
    ----------
    network : torch.nn.Module
        Network that takes rows with their context.
    context : Tensor
        The context, `(context_dim,)`.
    """

    context: Tensor

    def __init__(self, network: nn.Module, context: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("context", context, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Apply the network to rows with the context appended."""
        return self.network(beside(rows, self.context.expand(len(rows), -1)))


def beside(values: Tensor, context: Tensor | None) -> Tensor:
    """Append the context of each row to its values; the input of a conditional network.

    Examples
    --------
    >>> beside(torch.zeros(2, 3), torch.ones(2, 1)).shape
    torch.Size([2, 4])
    """
    if context is None:
        return values
    return torch.cat([values, context.to(values.dtype)], dim=-1)


def posterior_outputs(latent_dim: int) -> int:
    """Return the number of outputs of H for q(z | x): a mean and a lower triangular matrix.

    Examples
    --------
    >>> posterior_outputs(3)
    9
    """
    return latent_dim + latent_dim * (latent_dim + 1) // 2


def dtype_of(network: nn.Module) -> torch.dtype:
    """Return the dtype of a network's weights, in which it is called."""
    return next((p.dtype for p in network.parameters()), torch.get_default_dtype())
