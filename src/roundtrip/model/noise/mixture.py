"""Mixture noise: for each feature, Gaussians given by G and fixed boxes weighted by G.

Real columns have spikes, rounded values and hard edges. A Gaussian around G(z) only blurs them, and
a network that must move a narrow Gaussian onto each of a hundred spikes learns slowly. Therefore
some components do not depend on z: soft boxes, which are placed on the values of the column before
training. G gives only their weights. A box is ``(σ((x-a+w)/s) - σ((x-a-w)/s)) / 2w`` with the
logistic function σ: a uniform density of half-width w whose edges have softness s. Dequantised
columns consist of such boxes.

Real columns also have rare values far from all others, which Gaussians and boxes find impossible.
So the last component of each feature, the tail, is a Student t distribution with 2 degrees of
freedom around the median of the column. G gives its weight, too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from roundtrip.model.noise.base import Noise, ObservationModel, gumbel_argmax, normal
from roundtrip.model.noise.gaussian import inverse_softplus
from roundtrip.model.noise.histogram import box_edges
from roundtrip.model.noise.intervals import (
    MixtureParts,
    averaged,
    log_mixture_interval,
    mixture_cdf,
    tail_variance,
)
from roundtrip.model.noise.mixture_density import (
    NEGLIGIBLE,
    MixtureConstants,
    MixtureLogDensity,
    exact_log_density,
    log_box_density,
    parts,
)
from roundtrip.parameters import check_integer, check_number, is_auto

FIRST_BOX_SHARE = 0.1
"""Weight of all boxes together before training."""

SMALL_TABLE_BOX_SHARES = (FIRST_BOX_SHARE, 1e-5)
"""Initial weights of the boxes that fits of small tables compare."""

FIRST_TAIL_SHARE = 1e-3
"""Weight of the tail before training."""

FIRST_SPREAD = 1.5
"""The Gaussians start evenly spread over this many of their widths on either side of G(z)."""

SHIFT_WIDTHS = 20.0
"""Largest unit in which a box moves, in its half-widths; wide boxes move in scaled units."""

CALIBRATIONS = tuple((w, t) for w in (1.0, 1.15, 1.3, 1.5) for t in (1.0, 1.2, 1.5, 2.0))
"""Factors on widths of Gaussians and temperatures of weights that held-out rows choose from."""

SMALLEST_LEVEL = 1e-7
"""Draws of the tail lie between this quantile and the one as far from 1."""

SMALLEST_DENSITY = 1e-17
"""Of x_j given z, also relative to the largest box or tail, below which terms that were cut off may
count."""

NO_WEIGHT = -100.0
"""Logit of components without weight."""

SQRT_2PI = math.sqrt(2 * math.pi)

OF_FEATURES = {
    *("floor", "tail_centre", "tail_scale", "first_centres", "shift_units"),
    *("shifts", "log_widths", "log_softness"),
}
"""Tensors with a row for each feature."""


@dataclass(frozen=True, repr=False)
class Mixture(Noise):  # numpydoc ignore=PR02
    """A mixture of Gaussians, boxes and a heavy tail per feature, whose parameters depend on z.

    Parameters
    ----------
    gaussians : int, default=6
        Number of Gaussians per feature. Their weights, means and widths depend on z.
    boxes : int, default=32
        Number of soft boxes per feature. Their places and widths are learnt, but only their weights
        depend on z.
    box_share : float or "auto", default="auto"
        Weight of all boxes together before training. With a small one, training first learns how
        columns depend on each other, and only then describes each column by its boxes. "auto" is
        0.1; tables of fewer than 20,000 rows try 1e-5, too, and held-out rows decide.
    outside_share : float, default=1e-4
        Share of rows that lie outside of the data: each of their features follows its tail,
        whatever z. Such rows bound the density from below, so that rows far from all data have a
        certain density.

    Examples
    --------
    >>> Mixture(boxes=16).gaussians
    6
    """

    gaussians: int = 6
    boxes: int = 32
    box_share: float | Literal["auto"] = "auto"
    outside_share: float = 1e-4

    def check(self) -> None:
        """Check every setting."""
        check_integer("gaussians", self.gaussians, minimum=1)
        check_integer("boxes", self.boxes, minimum=0)
        if not is_auto(self.box_share):
            check_number("box_share", self.box_share, above=0, below=1)
        if self.outside_share != 0:
            check_number("outside_share", self.outside_share, above=0, below=1)

    @property
    def variants(self) -> tuple[Noise, ...]:
        """The mixture with each weight of the boxes to try."""
        if not is_auto(self.box_share) or not self.boxes:
            return (self,)
        return tuple(self.with_params(box_share=share) for share in SMALL_TABLE_BOX_SHARES)

    def build(self, features: int, floor: Tensor) -> "MixtureNoise":
        """Return a new mixture."""
        share = FIRST_BOX_SHARE if self.box_share == "auto" else self.box_share
        return MixtureNoise(
            features, moving=self.gaussians, fixed=self.boxes, box_share=share, floor=floor
        )


class MixtureNoise(ObservationModel):
    """p(x_j | z) = Σ_k π_jk(z) N(x_j | μ_jk(z), s_jk(z)²) + Σ_l π_jl(z) box_jl(x_j) + π_j(z) t_j.

    Here t_j is the tail, a Student t density at x_j.

    Parameters
    ----------
    features : int
        Number of features of x.
    moving : int, default=4
        Number of Gaussians per feature, whose means and widths G gives.
    fixed : int, default=16
        Number of soft boxes per feature, whose places and widths do not depend on z.
    box_share : float, default=0.1
        Weight of all boxes together before training.
    floor : Tensor or float, default=1e-3
        Smallest width of a component, a number or `(features,)`.

    Examples
    --------
    >>> import torch
    >>> noise = MixtureNoise(3, moving=2, fixed=4)
    >>> noise.n_outputs
    36
    >>> noise.log_prob(torch.zeros(5, 36), torch.zeros(5, 3)).shape
    torch.Size([5, 3])
    """

    calibrations = CALIBRATIONS
    floor: Tensor
    offsets: Tensor
    first_width: Tensor
    first_raw: Tensor
    first_logits: Tensor
    first_centres: Tensor
    shift_units: Tensor
    widening: Tensor
    sharpness: Tensor
    tail_centre: Tensor
    tail_scale: Tensor

    def __init__(
        self,
        features: int,
        *,
        moving: int = 4,
        fixed: int = 16,
        box_share: float = FIRST_BOX_SHARE,
        floor: Tensor | float = 1e-3,
    ) -> None:
        super().__init__()
        self.features, self.moving, self.fixed = features, moving, fixed
        self.n_outputs = features * (2 + 3 * moving + fixed)
        floor = torch.as_tensor(floor, dtype=torch.float32).expand(features)
        self.register_buffer("floor", floor[:, None].clone())
        self.register_buffer("offsets", torch.linspace(-FIRST_SPREAD, FIRST_SPREAD, moving))
        self.register_buffer("first_width", torch.ones(()))
        self.register_buffer("first_raw", torch.zeros(()))
        shares = [(1 - box_share if fixed else 1.0) / moving] * moving
        shares += [box_share / max(fixed, 1)] * fixed
        self.register_buffer("first_logits", torch.log(torch.tensor([*shares, FIRST_TAIL_SHARE])))
        self.register_buffer("widening", torch.ones(()))
        self.register_buffer("sharpness", torch.ones(()))
        self.register_buffer("tail_centre", torch.zeros(features, 1))
        self.register_buffer("tail_scale", torch.ones(features, 1))
        # Narrow boxes move in units of 20 half-widths: a step of training must not miss a spike.
        self.shifts = nn.Parameter(torch.zeros(features, fixed))
        self.register_buffer("first_centres", torch.zeros(features, fixed))
        self.register_buffer("shift_units", torch.ones(features, fixed))
        self.log_widths = nn.Parameter(torch.zeros(features, fixed))
        self.log_softness = nn.Parameter(torch.zeros(features, fixed))

    @property
    def centres(self) -> Tensor:
        """Centres of the boxes, `(features, fixed)`."""
        return self.first_centres + self.shift_units * self.shifts

    @torch.no_grad()
    def start(self, data: Tensor, width: float) -> None:
        """Start with Gaussians of about this width, boxes on the values, and wide tails."""
        self.first_width.fill_(width)
        self.first_raw.fill_(inverse_softplus(width))
        columns = data.cpu().numpy().T
        found = np.stack([box_edges(column, self.fixed) for column in columns])
        edges = torch.from_numpy(found).to(data.device).float()
        half = torch.maximum((edges[:, 1:] - edges[:, :-1]) / 2, self.floor)
        self.first_centres.copy_((edges[:, 1:] + edges[:, :-1]) / 2)
        self.shift_units.copy_((SHIFT_WIDTHS * half).clamp_max(1.0))
        self.log_widths.copy_(half.log())
        self.log_softness.copy_(half.log() - 1)
        centre = data.sort(dim=0).values[len(data) // 2]
        self.tail_centre.copy_(centre[:, None])
        spread = (data - centre).abs().mean(dim=0)
        self.tail_scale.copy_(torch.maximum(spread[:, None].float(), self.floor))

    def outside_outputs(self) -> Tensor:
        """Return outputs that give all weight to the tails."""
        outputs = self.tail_centre.new_zeros(self.n_outputs)
        parts(outputs, self.features, self.moving)[1][..., :-1] = NO_WEIGHT
        return outputs

    @torch.no_grad()
    def calibrate(self, setting: tuple[float, ...]) -> None:
        """Set the factor on the widths of Gaussians and the temperature of all weights."""
        widening, temperature = setting
        self.widening.fill_(widening)
        self.sharpness.fill_(1 / temperature)

    @property
    def _calibrated(self) -> bool:
        return bool((self.widening != 1) | (self.sharpness != 1))

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return log p(x_j | z), `(..., features)`, in the precision of `outputs` and `x`."""
        outputs = outputs.expand(*torch.broadcast_shapes(outputs.shape[:-1], x.shape[:-1]), -1)
        dtype = torch.promote_types(outputs.dtype, x.dtype)
        outputs, x = outputs.to(dtype), x.to(dtype)
        boxes = [part.to(dtype) for part in (self.centres, *self._box_shape())]
        log_tail = self._log_tail(x[..., None]).to(dtype)
        if not (x.requires_grad or self._calibrated):
            constants = MixtureConstants(
                moving=self.moving,
                offsets=self.offsets.to(dtype),
                first_width=self.first_width.to(dtype),
                first_raw=self.first_raw.to(dtype),
                first_logits=self.first_logits.to(dtype),
                floor=self.floor.to(dtype),
                tail=log_tail.exp(),
            )
            result, imprecise = MixtureLogDensity.apply(outputs, *boxes, x, constants)
            among = imprecise.any(dim=-1)
            if not among.any():
                return result
            if not among.all():  # a row must not depend on other rows
                rows = x.expand(*among.shape, -1)
                result = torch.empty_like(result)
                for part in (among, ~among):
                    result[part] = self.log_prob(outputs[part], rows[part])
                return result
        log_fixed = torch.cat([log_box_density(x[..., None], *boxes), log_tail], dim=-1)
        return exact_log_density(*self._split(outputs), log_fixed, x)

    def row_terms(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return x and the densities of boxes and tails there, which do not depend on z.

        They are relative to the largest one of each feature, whose logarithm is returned, too.
        """
        x = x.double()
        shape = (part.double() for part in (self.centres, *self._box_shape()))
        log_box = log_box_density(x[..., None], *shape)
        log_fixed = torch.cat([log_box, self._log_tail(x[..., None])], dim=-1)
        log_fixed += self.sharpness * self.first_logits[self.moving :]
        largest = log_fixed.amax(dim=-1)
        fixed = (log_fixed - largest[..., None]).clamp_min_(NEGLIGIBLE).exp_()
        return x, largest, fixed.to(self.centres.dtype)

    def log_prob_of_terms(self, outputs: Tensor, terms: tuple[Tensor, ...]) -> Tensor:
        """Return log p(x_j | z), `(..., features)` float64.

        Densities of components are summed in the precision of `outputs`: in float32 this changes
        log p(x_j | z) by some 1e-6. Gaussians may be narrow, so that their deviations are computed
        in float64.
        """
        x, largest, fixed = terms
        location, logits, shift, raw = parts(outputs, self.features, self.moving)
        if self.sharpness != 1:
            logits = self.sharpness * logits
        share = (self.sharpness * self.first_logits).exp().to(outputs)
        top = logits.amax(dim=-1, keepdim=True)
        weights = (logits - top).clamp_min_(NEGLIGIBLE).exp_()
        total = weights @ share
        others = (weights[..., self.moving :] * fixed).sum(dim=-1)
        sigma = softplus(raw + self.first_raw).mul_(self.widening).add_(self.floor)
        mean = (shift + self.offsets).mul_(self.first_width)
        deviation = ((x - location.double())[..., None] - mean).to(sigma.dtype).div_(sigma)
        # The smallest exponentials are slow denormal numbers, and count for nothing.
        exponent = deviation.square_().mul_(-0.5).clamp_min_(NEGLIGIBLE)
        heights = exponent.exp_().mul_(weights[..., : self.moving]).div_(sigma)
        gaussians = (heights @ share[: self.moving]).double() / SQRT_2PI
        height = largest.exp()
        density = torch.addcmul(gaussians, others.double(), height)
        # Terms that were cut off count if they are all there is, far from the data.
        cut = ~(density >= SMALLEST_DENSITY * height.clamp_min(1.0))
        result = density.log_().sub_(total.double().log_())
        if cut.any():
            among = cut.any(dim=-1)
            outputs = outputs.expand(*among.shape, -1)[among].double()
            result[among] = self.log_prob(outputs, x.expand(*among.shape, -1)[among])
        return result

    def mean(self, outputs: Tensor) -> Tensor:
        """Return E(x | z)."""
        logits, mean, _ = self._split(outputs)
        centres = torch.cat([self.centres, self.tail_centre], dim=-1)
        centres = centres.expand(*mean.shape[:-1], -1)
        return (torch.softmax(logits, dim=-1) * torch.cat([mean, centres], dim=-1)).sum(-1)

    def variance(self, outputs: Tensor) -> Tensor:
        """Return Var(x | z) of what `sample` draws: between two quantiles, the tail has one."""
        logits, mean, sigma = self._split(outputs)
        half, soft = self._box_shape()
        within_box = half.square() / 3 + (math.pi * soft).square() / 3
        within_tail = tail_variance(SMALLEST_LEVEL) * self.tail_scale.square()
        fixed = torch.cat([within_box, within_tail], dim=-1).to(mean.dtype)
        within = torch.cat([sigma.square(), fixed.expand(*mean.shape[:-1], -1)], dim=-1)
        centres = torch.cat([self.centres, self.tail_centre], dim=-1).to(mean.dtype)
        centres = torch.cat([mean, centres.expand(*mean.shape[:-1], -1)], dim=-1)
        apart = centres - self.mean(outputs)[..., None]
        return (torch.softmax(logits, dim=-1) * (within + apart.square())).sum(-1)

    def cdf(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Return p(x_j <= value | z), `(..., features)` float64."""
        return mixture_cdf(self._of_intervals(outputs), x.double())

    def log_interval(self, outputs: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return log p(low < x_j <= high | z), `(..., features)` float64."""
        return log_mixture_interval(self._of_intervals(outputs), low.double(), high.double())

    def averaged_cdf(self, outputs: Tensor, weights: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the averaged cdf of one feature: that of one mixture with more Gaussians."""
        mixture = averaged(self._of_intervals(outputs), weights)
        return lambda x: mixture_cdf(mixture, x[..., None])[..., 0]

    def factor(self, place: int) -> tuple[ObservationModel, list[int]]:
        """Return the mixture of one feature, and its outputs."""
        one = MixtureNoise(1, moving=self.moving, fixed=self.fixed)
        own = {
            name: each[place : place + 1] if name in OF_FEATURES else each
            for name, each in self.state_dict().items()
        }
        one.load_state_dict(own)
        size = self.n_outputs // self.features - 1
        first = self.features + place * size
        one = one.requires_grad_(False).to(self.floor.device)
        return one, [place, *range(first, first + size)]

    def sample(self, outputs: Tensor, rng: torch.Generator) -> Tensor:
        """Choose a component by its weight and draw from it; `(rows, features)`."""
        logits, mean, sigma = self._split(outputs)
        like = mean[..., 0]
        chosen = gumbel_argmax(logits, rng)
        which = chosen.clamp_max(self.moving - 1)[..., None]
        gaussian = mean.gather(-1, which)[..., 0]
        gaussian = gaussian + sigma.gather(-1, which)[..., 0] * normal(like, rng)
        uniform, level = (
            torch.rand(like.shape, generator=rng, dtype=like.dtype).to(like.device)
            for _ in range(2)
        )
        # The quantile function of a Student t distribution with 2 degrees of freedom.
        inner = level.clamp(SMALLEST_LEVEL, 1 - SMALLEST_LEVEL)
        tail = (2 * inner - 1) / torch.sqrt(2 * inner * (1 - inner))
        tail = self.tail_centre[:, 0] + self.tail_scale[:, 0] * tail
        drawn = torch.where(chosen == self.moving + self.fixed, tail, gaussian)
        if not self.fixed:
            return drawn
        # A soft box is the density of the sum of a uniform and a logistic variable.
        which = (chosen - self.moving).clamp(0, self.fixed - 1)
        centre, half, soft = (
            part.expand(*like.shape, -1).gather(-1, which[..., None])[..., 0]
            for part in (self.centres, *self._box_shape())
        )
        box = centre + (2 * uniform - 1) * half + soft * torch.logit(level, eps=1e-12)
        in_box = (chosen >= self.moving) & (chosen < self.moving + self.fixed)
        return torch.where(in_box, box, drawn)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits of all components and the means and widths of the Gaussians."""
        location, logits, shift, raw = parts(outputs, self.features, self.moving)
        sigma = self.floor + self.widening * softplus(raw + self.first_raw)
        mean = location[..., None] + self.first_width * (shift + self.offsets)
        return self.sharpness * (logits + self.first_logits), mean, sigma

    def _of_intervals(self, outputs: Tensor) -> MixtureParts:
        """Return logits, Gaussians, boxes and tail in float64."""
        logits, mean, sigma = self._split(outputs.double())
        centre, half, soft = (part.double() for part in (self.centres, *self._box_shape()))
        tail = (self.tail_centre.double(), self.tail_scale.double())
        return MixtureParts(logits, (mean, sigma), (centre, half, soft), tail)

    def _log_tail(self, x: Tensor) -> Tensor:
        """Return the log density of the tails at x, `(..., features, 1)`."""
        distance = (x - self.tail_centre) / self.tail_scale
        # The density is (2 + distance²)^(-3/2); a square would overflow at 1e200.
        root = torch.hypot(distance, torch.full_like(distance, math.sqrt(2)))
        return -3 * root.log() - self.tail_scale.log()

    def _box_shape(self) -> tuple[Tensor, Tensor]:
        """Return half-widths and softness of the boxes, `(features, fixed)`."""
        return self.log_widths.exp() + self.floor, self.log_softness.exp() + self.floor / 4
