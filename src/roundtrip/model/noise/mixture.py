"""Mixture noise: for each feature, Gaussians given by G and fixed boxes weighted by G.

Real columns have spikes, rounded values and hard edges. A Gaussian around G(z) only blurs them, and
a network that must move a narrow Gaussian onto each of a hundred spikes learns slowly. Therefore
some components do not depend on z: soft boxes, which are placed on the values of the column before
training. G gives only their weights. A box is ``(σ((x-a+w)/s) - σ((x-a-w)/s)) / 2w`` with the
logistic function σ: a uniform density of half-width w whose edges have softness s. Dequantised
columns consist of such boxes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from roundtrip.model.noise.base import Noise, ObservationModel, normal
from roundtrip.model.noise.gaussian import HALF_LOG_2PI, inverse_softplus
from roundtrip.model.noise.mixture_density import (
    NEGLIGIBLE,
    MixtureLogDensity,
    log_box_density,
    log_sum,
)
from roundtrip.parameters import check_integer

FIRST_BOX_SHARE = 0.1
"""Weight of all boxes together before training."""

FIRST_SPREAD = 1.5
"""The Gaussians start evenly spread over this many of their widths on either side of G(z)."""

SMALLEST_BOXES, SMALLEST_GAUSSIANS = 1e-15, -40.0
"""Density of all boxes, and log density of all Gaussians, relative to the largest box, below which
terms that were cut off may count."""


@dataclass(frozen=True, repr=False)
class Mixture(Noise):  # numpydoc ignore=PR02
    """A mixture of Gaussians and boxes per feature, with parameters that depend on z.

    Parameters
    ----------
    gaussians : int, default=6
        Number of Gaussians per feature. Their weights, means and widths depend on z.
    boxes : int, default=32
        Number of soft boxes per feature. Their places and widths are learnt, but only their weights
        depend on z.

    Examples
    --------
    >>> Mixture(boxes=16).gaussians
    6
    """

    gaussians: int = 6
    boxes: int = 32

    def check(self) -> None:
        """Check both counts."""
        check_integer("gaussians", self.gaussians, minimum=1)
        check_integer("boxes", self.boxes, minimum=0)

    def build(self, features: int, floor: Tensor) -> "MixtureNoise":
        """Return a new mixture."""
        return MixtureNoise(features, moving=self.gaussians, fixed=self.boxes, floor=floor)


class MixtureNoise(ObservationModel):
    """p(x_j | z) = Σ_k π_jk(z) N(x_j | μ_jk(z), s_jk(z)²) + Σ_l π_jl(z) box_jl(x_j).

    Parameters
    ----------
    features : int
        Number of features of x.
    moving : int, default=4
        Number of Gaussians per feature, whose means and widths G gives.
    fixed : int, default=16
        Number of soft boxes per feature, whose places and widths do not depend on z.
    floor : Tensor or float, default=1e-3
        Smallest width of a component, a number or `(features,)`.

    Examples
    --------
    >>> import torch
    >>> noise = MixtureNoise(3, moving=2, fixed=4)
    >>> noise.n_outputs
    33
    >>> noise.log_prob(torch.zeros(5, 33), torch.zeros(5, 3)).shape
    torch.Size([5, 3])
    """

    floor: Tensor
    offsets: Tensor
    first_width: Tensor
    first_raw: Tensor
    first_logits: Tensor

    def __init__(
        self, features: int, *, moving: int = 4, fixed: int = 16, floor: Tensor | float = 1e-3
    ) -> None:
        super().__init__()
        self.features, self.moving, self.fixed = features, moving, fixed
        self.n_outputs = features * (1 + 3 * moving + fixed)
        floor = torch.as_tensor(floor, dtype=torch.float32).expand(features)
        self.register_buffer("floor", floor[:, None].clone())
        self.register_buffer("offsets", torch.linspace(-FIRST_SPREAD, FIRST_SPREAD, moving))
        self.register_buffer("first_width", torch.ones(()))
        self.register_buffer("first_raw", torch.zeros(()))
        shares = torch.tensor([1 - FIRST_BOX_SHARE] * moving + [FIRST_BOX_SHARE] * fixed)
        counts = torch.tensor([moving] * moving + [fixed] * fixed)
        self.register_buffer("first_logits", torch.log(shares / counts))
        self.centres = nn.Parameter(torch.zeros(features, fixed))
        self.log_widths = nn.Parameter(torch.zeros(features, fixed))
        self.log_softness = nn.Parameter(torch.zeros(features, fixed))

    @torch.no_grad()
    def start(self, data: Tensor, width: float) -> None:
        """Start with Gaussians of about this width, and boxes on the cells between quantiles."""
        self.first_width.fill_(width)
        self.first_raw.fill_(inverse_softplus(width))
        levels = torch.linspace(0, 1, self.fixed + 1, dtype=data.dtype, device=data.device)
        ordered = data.sort(dim=0).values
        edges = ordered[(levels * (len(data) - 1)).round().long()].T.float()
        half = torch.maximum((edges[:, 1:] - edges[:, :-1]) / 2, self.floor)
        self.centres.copy_((edges[:, 1:] + edges[:, :-1]) / 2)
        self.log_widths.copy_(half.log())
        self.log_softness.copy_(half.log() - 1)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z), `(..., features)`, in the precision of `outputs` and `x`."""
        logits, mean, sigma = self._split(outputs)
        boxes = (part.to(mean.dtype) for part in (self.centres, *self._box_shape()))
        result: Tensor = MixtureLogDensity.apply(logits, mean, sigma, *boxes, x[..., None])
        return result

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return x and the densities of the boxes there, which do not depend on z.

        They are relative to the largest one of each feature, whose logarithm is returned, too.
        """
        x = x.double()
        if not self.fixed:
            return (x,)
        shape = (part.double() for part in (self.centres, *self._box_shape()))
        log_box = log_box_density(x[..., None], *shape) + self.first_logits[self.moving :]
        largest = log_box.amax(dim=-1)
        box = (log_box - largest[..., None]).clamp_min_(NEGLIGIBLE).exp_()
        return x, largest, box.to(self.centres.dtype)

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), `(..., features)` float64.

        Weights are summed in the precision of `outputs`: in float32 this changes log p(x_j | z) by
        some 1e-6. Gaussians may be narrow, so that their deviations are computed in float64.
        """
        if not self.fixed:
            return super().log_prob_of_terms(outputs, terms)
        x, largest, box = terms
        location, logits, shift, raw = self._parts(outputs)
        top = logits.amax(dim=-1, keepdim=True)
        weights = (logits - top).clamp_min_(NEGLIGIBLE).exp_()
        total = (weights @ self.first_logits.exp().to(weights)).log()
        boxes = (weights[..., self.moving :] * box).sum(dim=-1)
        mean = self.first_width * (shift.contiguous() + self.offsets)
        sigma = self.floor + softplus(raw.contiguous() + self.first_raw)
        deviation = ((x - location.double())[..., None] - mean).div_(sigma)
        log_weights = (logits[..., : self.moving] - top).add_(self.first_logits[: self.moving])
        gaussians = log_sum((log_weights - sigma.log()) - 0.5 * deviation.square()) - HALF_LOG_2PI
        result = torch.logaddexp(gaussians, boxes.double().log() + largest) - total
        # Cut-off terms count if they are all there is, as in the tails of the boxes.
        cut = (boxes < SMALLEST_BOXES) & (gaussians < largest + SMALLEST_GAUSSIANS)
        if cut.any():
            among = cut.any(dim=-1)
            outputs = outputs.expand(*among.shape, -1)[among].double()
            result[among] = self.log_prob(outputs, x.expand(*among.shape, -1)[among])
        return result

    def mean(self, outputs: Tensor) -> Tensor:
        """Return E(x | z)."""
        logits, mean, _ = self._split(outputs)
        centres = self.centres.expand(*mean.shape[:-1], self.fixed)
        return (torch.softmax(logits, dim=-1) * torch.cat([mean, centres], dim=-1)).sum(-1)

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Choose a component by its weight and draw from it; `(rows, features)`."""
        logits, mean, sigma = self._split(outputs)
        like = mean[..., 0]
        chosen = _categorical(logits, rng)
        which = chosen.clamp_max(self.moving - 1)[..., None]
        gaussian = mean.gather(-1, which)[..., 0]
        gaussian = gaussian + sigma.gather(-1, which)[..., 0] * normal(like, rng)
        if not self.fixed:
            return gaussian
        # A soft box is the density of the sum of a uniform and a logistic variable.
        uniform, level = (
            torch.rand(like.shape, generator=rng, dtype=like.dtype).to(like.device)
            for _ in range(2)
        )
        which = (chosen - self.moving).clamp_min(0)[..., None]
        centre, half, soft = (
            part.expand(*like.shape, -1).gather(-1, which)[..., 0]
            for part in (self.centres, *self._box_shape())
        )
        box = centre + (2 * uniform - 1) * half + soft * torch.logit(level, eps=1e-12)
        return torch.where(chosen >= self.moving, box, gaussian)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits of all components and the means and widths of the Gaussians."""
        location, logits, shift, raw = self._parts(outputs)
        sigma = self.floor + softplus(raw + self.first_raw)
        mean = location[..., None] + self.first_width * (shift + self.offsets)
        return logits + self.first_logits, mean, sigma

    def _parts(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return locations `(..., features)`, then logits, shifts and raw widths of components."""
        # Not `tensor_split`, whose backward fills an array of zeros for each part.
        location, rest = outputs.split([self.features, self.n_outputs - self.features], dim=-1)
        rest = rest.unflatten(-1, (self.features, -1))
        sizes = [self.moving + self.fixed, self.moving, self.moving]
        logits, shift, raw = rest.split(sizes, dim=-1)
        return location, logits, shift, raw

    def _box_shape(self) -> tuple[Tensor, Tensor]:
        """Return half-widths and softness of the boxes, `(features, fixed)`."""
        return self.log_widths.exp() + self.floor, self.log_softness.exp() + self.floor / 4


def _categorical(logits: Tensor, rng: torch.Generator) -> Tensor:
    """Draw an index along the last axis for every entry of the others, by the Gumbel trick."""
    level = torch.rand(logits.shape, generator=rng, dtype=torch.float64)
    gumbel = -torch.log(-torch.log(level.clamp(1e-300, 1 - 1e-16)))
    return (logits.double() + gumbel.to(logits.device)).argmax(dim=-1)
