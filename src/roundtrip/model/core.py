"""The Roundtrip model: a generator, an encoder, a prior and an observation model."""

import copy
import math
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.quasirandom import SobolEngine

from roundtrip.model.noise import (
    LARGEST_SIGMA,
    SMALLEST_SIGMA,
    ConstantGaussian,
    ObservationModel,
    Unseen,
)
from roundtrip.model.prior import MixturePrior, Randomness
from roundtrip.parameters import check_integer, check_number

SMALLEST_POSTERIOR_WIDTH = 1e-4
CUBE_EDGE = 1e-10


class RoundtripModel(nn.Module):
    """p(x) = ∫ p(x | G(z)) p(z) dz, eq. (4), with H as the way back.

    Parameters
    ----------
    generator : module G from `(rows, latent_dim)` to `(rows, features)`, or to
        `(rows, noise.n_outputs)` if a `noise` is given.
    encoder : module H from `(rows, features)` to `(rows, latent_dim)`, or to
        `(rows, posterior_outputs(latent_dim))` if `has_posterior`.
    latent_dim : dimension m of z; smaller than, equal to or larger than the number of features.
    sigma : standard deviation of the paper's observation noise N(x | G(z), sigma² I).
    noise : another observation model instead.
    has_posterior : whether H gives a Gaussian q(z | x), not only a point.
    context_dim : numbers c that p(x | c) is conditioned on; 0: there are none. G then takes codes
        `(z, c)` and H rows `(x, c)` side by side, `(rows, latent_dim + context_dim)` and `(rows,
        features + context_dim)`.
    encodes_context : whether H takes c, too; in the paper it does not.
    prior : p(z); None: N(0, I), as in the paper.

    Any modules do. Both are used in evaluation mode when densities are estimated.

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
        prior: MixturePrior | None = None,
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
        self.prior = prior

    @property
    def device(self) -> torch.device:
        """Where the networks live."""
        return next(self.parameters()).device

    @property
    def sigma(self) -> Tensor:
        """Standard deviation of the noise where it is the same for all z: `()` or `(features,)`."""
        if not isinstance(self.noise, ConstantGaussian):
            raise ValueError(f"{type(self.noise).__name__} has no sigma: its width depends on z")
        return self.noise.sigma.detach()

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
        float32 that would be seen in a row's density; the encoder is called once a row, so that
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

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """x and the context of rows `(x, c)`; without a context, x and nothing."""
        features = rows.shape[-1] - self.context_dim
        return rows[..., :features], rows[..., features:]

    def decode(self, codes: Tensor) -> Tensor:
        """What G says about x given z, for the observation model; `(rows, noise.n_outputs)`."""
        return self.generator(codes.to(dtype_of(self.generator)))

    def generate(self, codes: Tensor) -> Tensor:
        """E(x | z), which is G(z) in the paper: `(rows, latent_dim)` → `(rows, features)`."""
        return self.noise.mean(self.decode(codes))

    def encode(self, rows: Tensor) -> Tensor:
        """H(x), `(rows, features)` → `(rows, latent_dim)`: a start, not a maximiser."""
        outputs = self._encoded(rows)
        return outputs[:, : self.latent_dim] if self.has_posterior else outputs

    def _encoded(self, rows: Tensor) -> Tensor:
        seen = rows if self.encodes_context else self.split(rows)[0]
        return self.encoder(seen.to(dtype_of(self.encoder)))

    def posterior(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Mean, `(rows, latent_dim)`, and lower Cholesky factor of the covariance of q(z | x)."""
        if not self.has_posterior:
            raise ValueError("this encoder gives a point, not a distribution of z")
        dim = self.latent_dim
        outputs = self._encoded(rows)
        mean, entries = outputs.split([dim, posterior_outputs(dim) - dim], dim=1)
        row, column = torch.tril_indices(dim, dim, device=rows.device)
        widths = softplus(entries) + SMALLEST_POSTERIOR_WIDTH
        entries = torch.where(row == column, widths, entries)
        factor = outputs.new_zeros(len(rows), dim, dim)
        factor[:, row, column] = entries
        return mean, factor

    def log_prior(self, z: Tensor) -> Tensor:
        """log p(z), N(0, I) unless it was learnt, a value for each vector along the last axis."""
        if self.prior is not None:
            return self.prior.log_prob(z)
        return -0.5 * z.double().square().sum(-1) - 0.5 * self.latent_dim * math.log(2 * math.pi)

    def prior_moments(self) -> tuple[Tensor, Tensor]:
        """Mean and lower Cholesky factor of the covariance of p(z), float64."""
        if self.prior is not None:
            return self.prior.moments()
        identity = torch.eye(self.latent_dim, dtype=torch.float64, device=self.device)
        return torch.zeros_like(identity[0]), identity

    def draw_codes(self, n_samples: int, random: Randomness) -> Tensor:
        """Draws of p(z), `(n_samples, latent_dim)` float64 on the CPU."""
        if self.prior is not None:
            return self.prior.sample(n_samples, random)
        return torch.from_numpy(random.standard_normal((n_samples, self.latent_dim)))

    def spread_codes(self, n_codes: int, seed: int) -> Tensor:
        """Codes that stand for p(z) in an average, `(n_codes, latent_dim)` float64 on the CPU.

        Scrambled Sobol points: they fill p(z) more evenly than draws, so that averages over them
        err less. `n_codes` is a power of two.
        """
        cube = SobolEngine(1 + self.latent_dim, scramble=True, seed=seed)
        # Points on the faces of the cube would be infinitely far out.
        uniform = cube.draw(n_codes, dtype=torch.float64).clamp(CUBE_EDGE, 1 - CUBE_EDGE)
        return torch.special.ndtri(uniform[:, 1:]) if self.prior is None else self.prior.at(uniform)

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x | z), one value a row, in float64."""
        return self.noise.log_prob(self.decode(z).double(), x.double()).sum(-1)

    def log_joint(self, x: Tensor, z: Tensor) -> Tensor:
        """log p(x, z) = log p(x | z) + log p(z), one value a row, in float64."""
        return self.log_likelihood(x, z) + self.log_prior(z)


class Conditioned(nn.Module):
    """A network with one context for all rows: it takes `(rows, inputs)` and fills in the rest."""

    context: Tensor

    def __init__(self, network: nn.Module, context: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("context", context, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """The network's answer for rows with the context beside them."""
        context = self.context.to(rows.dtype).expand(len(rows), -1)
        return self.network(torch.cat([rows, context], dim=1))


def posterior_outputs(latent_dim: int) -> int:
    """Numbers that H gives for a Gaussian q(z | x): a mean and a lower triangular matrix.

    >>> posterior_outputs(3)
    9
    """
    return latent_dim + latent_dim * (latent_dim + 1) // 2


def dtype_of(network: nn.Module) -> torch.dtype:
    """Each network is called in the precision of its own weights."""
    return next((p.dtype for p in network.parameters()), torch.get_default_dtype())
