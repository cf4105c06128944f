"""An observation model of rows of which some cells are only known to lie in a range."""

from collections.abc import Mapping

import torch
from torch import Tensor

from roundtrip.model.noise.base import ObservationModel
from roundtrip.model.noise.categorical import CategoricalNoise
from roundtrip.model.noise.ordinal import OrdinalNoise

Limit = tuple[float, float] | frozenset[int]
"""The ends of a range of numbers in scaled units, or the places of some levels of a category."""

IMPOSSIBLE = -1e4
"""Smallest logarithm of the probability of a limit: finite, so that draws can be compared."""


class Limited(ObservationModel):
    """p(x | z) times p(x_j in its limit | z) of features whose cells are missing.

    Parameters
    ----------
    noise : ObservationModel
        Observation model whose factors of missing cells, which are NaN, are 1.
    limits : mapping
        Limit of each limited feature by its place. It is the same for all rows.

    Examples
    --------
    >>> import torch
    >>> from roundtrip.model.noise import ConstantGaussian, Observed
    >>> noise = Limited(Observed(ConstantGaussian(2, sigma=1.0)), {0: (0.0, torch.inf)})
    >>> noise.log_prob(torch.zeros(1, 2), torch.tensor([[torch.nan, 1.0]])).detach()
    tensor([[-0.6931, -1.4189]])
    """

    def __init__(self, noise: ObservationModel, limits: Mapping[int, Limit]) -> None:
        super().__init__()
        self.noise = noise
        self.limits = dict(limits)
        self.features, self.n_outputs = noise.features, noise.n_outputs

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z), and log p(x_j in its limit | z) of limited features."""
        return self._with_limits(self.noise.log_prob(outputs, x), outputs)

    def outside_outputs(self) -> Tensor | None:
        """Return the outputs of rows far from all data, if the noise has such."""
        return self.noise.outside_outputs()

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the terms of the observed cells."""
        return self.noise.row_terms(x)

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), and log p(x_j in its limit | z) of limited features."""
        return self._with_limits(self.noise.log_prob_of_terms(outputs, terms), outputs)

    def mean(self, outputs: Tensor) -> Tensor:
        """Return E(x | z) of all features, without limits."""
        return self.noise.mean(outputs)

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Draw all features, without limits."""
        return self.noise.sample(outputs, rng)

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return p(x_j | z) of one feature without its limit, and its outputs."""
        return self.noise.factor(place)

    def _with_limits(self, log_p: Tensor, outputs: Tensor) -> Tensor:
        log_p = log_p.clone()
        for place, limit in self.limits.items():
            log_p[..., place] = log_limit(self.noise, place, limit, outputs).to(log_p)
        return log_p


def log_limit(noise: ObservationModel, place: int, limit: Limit, outputs: Tensor) -> Tensor:
    """Return log p(x_j in its limit | z), `(...)` float64, at least `IMPOSSIBLE`.

    Parameters
    ----------
    noise : ObservationModel
        Observation model of all features.
    place : int
        Place of the feature.
    limit : Limit
        Its limit.
    outputs : Tensor
        Outputs of G, `(..., n_outputs)`.

    Returns
    -------
    Tensor
        The logarithms.
    """
    one, needed = noise.factor(place)
    own = outputs[..., needed].double()
    if isinstance(limit, frozenset):
        log_p = torch.logsumexp(log_levels(one, own)[..., sorted(limit)], dim=-1)
    else:
        low, high = (torch.full_like(own[..., :1], end) for end in limit)
        log_p = one.log_interval(own, low, high)[..., 0]
    return log_p.clamp_min(IMPOSSIBLE)


def log_levels(one: ObservationModel, outputs: Tensor) -> Tensor:
    """Return log p(x_j = l | z) of the known levels of one category, `(..., levels)`."""
    assert isinstance(one, CategoricalNoise | OrdinalNoise)
    return one.log_probabilities(outputs)[0]
