"""Base class of observation models p(x | z), and of their settings."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from roundtrip.parameters import Component

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-7, 1e7
"""Limits of sigma, beyond which residuals over sigma lose precision in float64."""

FARTHEST = 1e30
"""Stands for infinity where a cdf is evaluated."""


@dataclass(frozen=True)
class LinearOutputs:
    """Which outputs of G follow which inputs of H before training, when both are linear.

    Attributes
    ----------
    outputs, inputs : list of int
        Pairs of an output of G and an input of H.
    slopes : list of float
        Change of the output if the input grows by 1.
    is_location : list of bool
        Whether the output is a mean of the input, rather than a deviation from it.
    """

    outputs: list[int]
    inputs: list[int]
    slopes: list[float]
    is_location: list[bool]


class ObservationModel(nn.Module, ABC):
    """Base class of p(x | z) = Π_j p(x_j | z), whose parameters are the outputs of G.

    Because of the product form, features can be left out or evaluated one by one. Subclasses set
    the two attributes and implement `log_prob`, `mean` and `sample`, and `start` if their initial
    state depends on the data.

    Attributes
    ----------
    features : int
        Number of features of x.
    n_outputs : int
        Number of outputs of G per row. The first `features` of them are the locations of the
        features.
    """

    features: int
    n_outputs: int

    @property
    def sigma(self) -> Tensor | None:
        """Standard deviation of Gaussian noise that does not depend on z, `()` or `(features,)`.

        None for all other noise.
        """
        return None

    calibrations: tuple[tuple[float, ...], ...] = ()
    """Settings of `calibrate` that held-out rows choose from; the first changes nothing."""

    def calibrate(self, setting: tuple[float, ...]) -> None:
        """Make the density wider after training, by one of `calibrations`."""

    def outside_outputs(self) -> Tensor | None:
        """Return outputs that describe rows far from all data, `(n_outputs,)`; optional.

        Every x must be possible under them, however far it is. None if no outputs are like that.
        """
        return None

    def start(self, data: Tensor, width: float) -> None:
        """Set the initial state from training rows, `(rows, features)`, and a width of noise."""

    def linear_outputs(self) -> LinearOutputs:
        """Return how G and H belong together if both are linear, as at the start of training."""
        places, ones = list(range(self.features)), [1.0] * self.features
        return LinearOutputs(places, places, ones, [True] * self.features)

    @abstractmethod
    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z) of each feature, `(..., features)`.

        Parameters
        ----------
        outputs : Tensor
            Outputs of G, `(..., n_outputs)`.
        x : Tensor
            Rows, `(..., features)`, whose leading axes broadcast with those of `outputs`.

        Returns
        -------
        Tensor
            One log density per feature, differentiable in `outputs` and `x`.
        """

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return what `log_prob_of_terms` needs of x alone; it is computed once per row.

        Scoring evaluates p(x | z) of a row for hundreds of z. Subclasses whose density has parts
        that do not depend on z override both methods.
        """
        return (x.double(),)

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), `(..., features)` float64, from outputs of G and `row_terms`."""
        return self.log_prob(outputs.double(), terms[0])

    @abstractmethod
    def mean(self, outputs: Tensor) -> Tensor:
        """Return E(x | z), `(..., features)`."""

    def variance(self, outputs: Tensor) -> Tensor:
        """Return Var(x | z), `(..., features)`; optional, for standard deviations."""
        raise self._lacks("variance(outputs)", "standard deviations of columns")

    def cdf(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return p(x_j <= value | z), `(..., features)`; optional, for ranges and quantiles.

        Parameters
        ----------
        outputs : Tensor
            Outputs of G, `(..., n_outputs)`.
        x : Tensor
            Values, `(..., features)`, whose leading axes broadcast with those of `outputs`.

        Returns
        -------
        Tensor
            Probabilities.
        """
        raise self._lacks("cdf(outputs, x)", "ranges, quantiles and probabilities of columns")

    def log_interval(self, outputs: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return log p(low < x_j <= high | z), `(..., features)`.

        Ends may be infinite. Subclasses override it where a difference of cdfs loses digits.
        """
        ends = (self.cdf(outputs, end.clamp(-FARTHEST, FARTHEST)) for end in (low, high))
        below, above = ends
        return (above - below).clamp_min(0.0).log()

    def averaged_cdf(self, outputs: Tensor, weights: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the cdf of the one feature, averaged over draws of z, as a function of x.

        Parameters
        ----------
        outputs : Tensor
            Outputs of G, `(rows, draws, n_outputs)`.
        weights : Tensor
            Weights of the draws, `(rows, draws)`, which sum to 1.

        Returns
        -------
        callable
            Function of `(rows, points)`, of the same shape.
        """

        def averaged(x: Tensor) -> Tensor:
            each = self.cdf(outputs[:, :, None], x[:, None, :, None])[..., 0]
            return (weights[..., None] * each).sum(1)

        return averaged

    def factor(self, place: int) -> "tuple[ObservationModel, list[int]]":
        """Return p(x_j | z) of one feature, and the places of the outputs of G that it needs.

        Subclasses with many outputs override it, so that one feature costs less than all.
        """
        return OneFactor(self, place), list(range(self.n_outputs))

    def _lacks(self, method: str, purpose: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__} has no {method}, which {purpose} need (docs/extending.md)"
        )

    @abstractmethod
    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw one x per row of outputs, `(rows, features)`; `rng` is on the CPU."""


class OneFactor(ObservationModel):
    """p(x_j | z) of one feature of another observation model.

    Parameters
    ----------
    noise : ObservationModel
        Observation model of all features.
    place : int
        Place of the feature.
    """

    def __init__(self, noise: ObservationModel, place: int) -> None:
        super().__init__()
        self.noise, self.place = noise, place
        self.features, self.n_outputs = 1, noise.n_outputs

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z), `(..., 1)`."""
        return self._own(self.noise.log_prob(outputs, self._everywhere(x)))

    def mean(self, outputs: Tensor) -> Tensor:
        """Return E(x_j | z)."""
        return self._own(self.noise.mean(outputs))

    def variance(self, outputs: Tensor) -> Tensor:
        """Return Var(x_j | z)."""
        return self._own(self.noise.variance(outputs))

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw x_j."""
        return self._own(self.noise.sample(outputs, rng))

    def cdf(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return p(x_j <= value | z)."""
        return self._own(self.noise.cdf(outputs, self._everywhere(x)))

    def log_interval(self, outputs: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return log p(low < x_j <= high | z)."""
        ends = (self._everywhere(low), self._everywhere(high))
        return self._own(self.noise.log_interval(outputs, *ends))

    def _everywhere(self, x: Tensor) -> Tensor:
        return x.expand(*x.shape[:-1], self.noise.features)

    def _own(self, values: Tensor) -> Tensor:
        return values[..., self.place : self.place + 1]


class Noise(Component, ABC):
    """Base class of the settings of an observation model, `Roundtrip(noise=...)`."""

    outside_share: float = 0.0
    """Share of rows that lie outside of the data, whatever z; see `outside_outputs`."""

    @property
    def variants(self) -> "tuple[Noise, ...]":
        """Settings that a fit of a small table chooses from by held-out rows."""
        return (self,)

    @abstractmethod
    def build(self, features: int, floor: Tensor) -> ObservationModel:
        """Return a new observation model.

        Parameters
        ----------
        features : int
            Number of features of x.
        floor : Tensor
            Smallest width of the noise of each feature, `(features,)`. Below it, noise would only
            fit rounding.

        Returns
        -------
        ObservationModel
            The observation model, on the CPU.
        """


def normal(like: Tensor, rng: torch.Generator) -> Tensor:
    """Draw standard normal numbers in the shape, dtype and device of `like` from a CPU `rng`."""
    return torch.randn(like.shape, generator=rng, dtype=like.dtype).to(like.device)


def gumbel_argmax(logits: Tensor, rng: torch.Generator) -> Tensor:
    """Draw an index along the last axis for every entry of the others, by the Gumbel trick."""
    level = torch.rand(logits.shape, generator=rng, dtype=torch.float64)
    gumbel = -torch.log(-torch.log(level.clamp(1e-300, 1 - 1e-16)))
    return (logits.double() + gumbel.to(logits.device)).argmax(dim=-1)
