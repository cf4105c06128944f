"""The Roundtrip model: a generator, an encoder, a prior and an observation model."""

import copy
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from roundtrip.model.noise import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    ConstantGaussian,
    ObservationModel,
    Unseen,
)
from roundtrip.model.prior import LatentDistribution, StandardNormal
from roundtrip.parameters import check_integer, check_number

SMALLEST_POSTERIOR_WIDTH = 1e-4


class RoundtripModel(nn.Module):
    """p(x) = ∫ p(x | G(z)) p(z) dz, eq. (4), with H as the way back.

    Any modules do. Both are used in evaluation mode when densities are estimated. A context c, if
    the model has one, stands behind z in what G takes and behind x in what H takes.

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
    sigma : float, optional
        Standard deviation of the paper's observation noise N(x | G(z), sigma² I).
    noise : ObservationModel, optional
        Another observation model instead.
    has_posterior : bool, default=False
        Whether H gives a Gaussian q(z | x), not only a point.
    context_dim : int, default=0
        Numbers c per row that p(x | c) is conditioned on; 0: none.
    encodes_context : bool, default=True
        Whether H takes c, too; in the paper it does not.
    prior : LatentDistribution, optional
        p(z); None: N(0, I), as in the paper.

    Examples
    --------
    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2), 2, sigma=0.1)
    >>> model.generate(torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

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
        self.noise = noise
        self.has_posterior = has_posterior
        self.context_dim = context_dim
        self.encodes_context = encodes_context
        self.prior = StandardNormal(self.latent_dim) if prior is None else prior

    @property
    def device(self) -> torch.device:
        """Where the networks live."""
        return next(self.parameters()).device

    @property
    def sigma(self) -> Tensor:
        """Standard deviation of the noise where it is the same for all z: `()` or `(features,)`."""
        sigma = self.noise.sigma
        if sigma is None:
            raise ValueError(f"{type(self.noise).__name__} has no sigma: its width depends on z")
        return sigma.detach()

    def with_sigma(self, sigma: float) -> Self:
        """The same networks with the paper's noise of another width."""
        return self._with("noise", ConstantGaussian(1, sigma=sigma).to(self.device))

    def without(self, unseen: Tensor) -> Self:
        """The model of the other features alone: those of `unseen`, `(features,)`, don't count.

        It takes rows of all features; what stands for those that don't count only helps H.
        """
        return self._with("noise", Unseen(self.noise, unseen.to(self.device)))

    def with_precise_encoder(self) -> Self:
        """The same model, its encoder in float64.

        Matrix products of few columns may round a row differently in another place of a block. In
        float32 that would be seen in a row's density; the encoder is called once per row, so that
        precision costs next to nothing.
        """
        return self._with("encoder", copy.deepcopy(self.encoder).double())

    def _with(self, name: str, part: nn.Module) -> Self:
        other = copy.copy(self)
        other._modules = {**self._modules, name: part}
        return other

    def given(self, context: Tensor) -> "RoundtripModel":
        """The model of p(x | context) for one context, `(context_dim,)`: one without a context."""
        encoder = Conditioned(self.encoder, context) if self.encodes_context else self.encoder
        return RoundtripModel(
            Conditioned(self.generator, context),
            encoder,
            self.latent_dim,
            noise=self.noise,
            has_posterior=self.has_posterior,
            prior=self.prior,
        )

    def decode(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        """What G says about x given z, for the observation model; `(rows, noise.n_outputs)`."""
        return self.generator(beside(z, context).to(dtype_of(self.generator)))

    def generate(self, z: Tensor, context: Tensor | None = None) -> Tensor:
        """E(x | z), which is G(z) in the paper: `(rows, latent_dim)` → `(rows, features)`."""
        return self.noise.mean(self.decode(z, context))

    def encode(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """H(x), `(rows, features)` → `(rows, latent_dim)`: a start, not a maximiser."""
        outputs = self._encoded(x, context)
        return outputs[:, : self.latent_dim] if self.has_posterior else outputs

    def _encoded(self, x: Tensor, context: Tensor | None) -> Tensor:
        inputs = beside(x, context) if self.encodes_context else x
        return self.encoder(inputs.to(dtype_of(self.encoder)))

    def posterior(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean, `(rows, latent_dim)`, and lower Cholesky factor of the covariance of q(z | x)."""
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

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x | z), one value per row, in float64."""
        return self.noise.log_prob(self.decode(z).double(), x.double()).sum(-1)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x, z) = log p(x | z) + log p(z), one value per row, in float64."""
        return self.log_likelihood(x, z) + self.prior.log_prob(z)


class Conditioned(nn.Module):
    """A network with one context for all rows: it takes `(rows, inputs)` and fills in the rest."""

    context: Tensor

    def __init__(self, network: nn.Module, context: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("context", context, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """The network's answer for rows with the context beside them."""
        return self.network(beside(rows, self.context.expand(len(rows), -1)))


def beside(values: Tensor, context: Tensor | None) -> Tensor:
    """What a network takes: values `(rows, numbers)` with their context behind them.

    >>> beside(torch.zeros(2, 3), torch.ones(2, 1)).shape
    torch.Size([2, 4])
    """
    if context is None:
        return values
    return torch.cat([values, context.to(values.dtype)], dim=-1)


def posterior_outputs(latent_dim: int) -> int:
    """Numbers that H gives for a Gaussian q(z | x): a mean and a lower triangular matrix.

    >>> posterior_outputs(3)
    9
    """
    return latent_dim + latent_dim * (latent_dim + 1) // 2


def dtype_of(network: nn.Module) -> torch.dtype:
    """Each network is called in the precision of its own weights."""
    return next((p.dtype for p in network.parameters()), torch.get_default_dtype())
