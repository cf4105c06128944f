"""The mean log density of many rows, to a tolerance of the mean.

Errors of rows are independent, so that a mean needs far fewer draws per row than a single row does.
But the logarithm of a mean of few weights is too low on average. A random part of the rows
therefore takes more points: at least 2ˡ times as many with a probability of 2⁻¹·⁵ˡ, and what each
doubling adds to the logarithm is divided by that probability. On average this is the logarithm of
the mean over 512 points, whose bias is small unless weights are very uneven (Rhee and Glynn, 2015,
"Unbiased estimation with square root convergence for SDE models"). Rows that the encoder does not
know, and all rows if they are few, are estimated one by one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from roundtrip.density.adaptive import DEFAULT_EVALUATIONS, NET_ROWS_PER_CHUNK, adaptive
from roundtrip.density.encoder_proposal import EncoderProposal, net_log_weights
from roundtrip.density.nets import uniform_of_keys
from roundtrip.density.outside import with_outside
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.randomness import row_keys
from roundtrip.density.result import DensityEstimate
from roundtrip.density.starts import unusual_rows
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

FIRST_POINTS, MOST_DOUBLINGS = 8, 6
RARITY = 1.5
"""Each doubling is 2^RARITY times rarer than the one before: rarer than it costs more, and not as
rare as what it adds gets smaller."""

FIRST_REPEATS, MOST_REPEATS = 2, 64
"""Independent estimates of each row; their differences give the standard error."""

ROUGH_ROW_TOL = 0.4
"""Standard error of a row from which on the first repeats are mostly enough."""

LOOSEST_ROW_TOL = 0.2
"""Standard error s of a row that is estimated by itself: s²/2, the bias of its logarithm, is then
small enough to be corrected."""


@dataclass(frozen=True)
class MeanDensity:
    """Mean log density of rows with its standard error.

    Attributes
    ----------
    mean, std_error : float
        Mean log density, and the standard error that draws leave. How much the mean would differ
        for other rows is not part of it.
    rows : int
        Number of rows.
    n_evaluations : int
        Evaluations of G in all.
    failed_rows : int
        Rows that did not converge, among those that were estimated one by one.
    converged : bool
        Whether the standard error is within the tolerance and no row failed.

    Examples
    --------
    >>> MeanDensity(-1.25, 0.004, 1000, 32_000, 0, True)
    <MeanDensity: -1.2500 ± 0.0040 over 1000 rows, 32 evaluations of G per row>
    """

    mean: float
    std_error: float
    rows: int
    n_evaluations: int
    failed_rows: int
    converged: bool

    def __repr__(self) -> str:
        state = "" if self.converged else ", not converged"
        return (
            f"<MeanDensity: {self.mean:.4f} ± {self.std_error:.4f} over {self.rows} "
            f"row{'s' * (self.rows != 1)}, "
            f"{self.n_evaluations / self.rows:.0f} evaluations of G per row{state}>"
        )


@torch.no_grad()
def mean_log_density(
    prepared: PreparedModel,
    x: Tensor,
    counts: Tensor,
    *,
    tol: float,
    seed: int,
    verbose: bool = False,
) -> MeanDensity:
    """Estimate the mean log p(x) of rows.

    Parameters
    ----------
    prepared : PreparedModel
        The model and its banks.
    x : Tensor
        Distinct rows in scaled units, `(rows, features)`. Equal rows would have equal errors.
    counts : Tensor
        How often each row counts, `(rows,)`.
    tol : float
        Standard error of the mean, in nats.
    seed : int
        Seed of the draws.
    verbose : bool, default=False
        Whether to show a progress bar for rows that are estimated one by one.

    Returns
    -------
    MeanDensity
        The mean in scaled units.
    """
    x, counts = x.double(), counts.double()
    goal = (tol * counts.sum().item()) ** 2
    row_tol = math.sqrt(goal / counts.square().sum().item())
    by_nets = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    if row_tol >= ROUGH_ROW_TOL and prepared.nets and prepared.net_variance.is_finite:
        by_nets = ~unusual_rows(
            prepared.model, x, prepared.bank(seed)
        ) & prepared.model.knows_pattern(x)
    parts = []
    if not by_nets.all():
        rest = adaptive(
            prepared,
            x[~by_nets],
            tol=min(row_tol, LOOSEST_ROW_TOL),
            max_evaluations=DEFAULT_EVALUATIONS,
            seed=seed,
            # A few unusual rows among many do not decide a mean.
            confirm=not by_nets.any(),
            verbose=verbose,
        )
        parts.append(_Sum.of(rest, counts[~by_nets].cpu().numpy()))
        goal -= parts[0].variance if math.isfinite(parts[0].variance) else 0.0
    if by_nets.any():
        named = named_seed(seed, "mean")
        parts.append(_sum_by_nets(prepared, x[by_nets], counts[by_nets], goal, named))
    return _mean_of(parts, int(counts.sum()), tol)


def mean_of_rows(estimate: DensityEstimate, counts: np.ndarray, tol: float) -> MeanDensity:
    """Return the mean of estimates of distinct rows, each counted so often."""
    return _mean_of([_Sum.of(estimate, counts)], int(counts.sum()), tol)


@dataclass(frozen=True)
class _Sum:
    """Sum of log densities and its variance, evaluations of G, and rows that failed."""

    total: float
    variance: float
    evaluations: int
    failed: int

    @classmethod
    def of(cls, estimate: DensityEstimate, counts: np.ndarray) -> "_Sum":
        """Add up estimates of single rows, each with the bias of its logarithm corrected."""
        squared = estimate.std_error**2
        correction = np.where(estimate.converged, 0.5 * squared, 0.0)
        return cls(
            float((counts * (estimate.log_density + correction)).sum()),
            float((counts**2 * squared).sum()),
            int(estimate.n_evaluations.sum()),
            int(counts[~estimate.converged].sum()),
        )


def _mean_of(parts: list[_Sum], rows: int, tol: float) -> MeanDensity:
    std_error = math.sqrt(sum(part.variance for part in parts)) / rows
    failed = sum(part.failed for part in parts)
    return MeanDensity(
        sum(part.total for part in parts) / rows,
        std_error,
        rows,
        sum(part.evaluations for part in parts),
        failed,
        std_error <= tol and not failed,
    )


def _sum_by_nets(
    prepared: PreparedModel, x: Tensor, counts: Tensor, goal: float, seed: int
) -> _Sum:
    """Return the sum of log densities with a variance of at most `goal`."""
    repeats = torch.empty(0, len(x), dtype=x.dtype, device=x.device)
    evaluations, variance = 0, math.inf
    while len(repeats) < FIRST_REPEATS or (goal > 0 and variance > goal):
        if len(repeats) >= MOST_REPEATS:
            break
        new = []
        for number in range(len(repeats), max(FIRST_REPEATS, 2 * len(repeats))):
            values, spent = _estimates(prepared, x, named_seed(seed, f"repeat {number}"))
            new.append(values)
            evaluations += spent
        repeats = torch.cat([repeats, torch.stack(new)])
        variance = float((counts.square() * repeats.var(dim=0)).sum() / len(repeats))
    return _Sum(float((counts * repeats.mean(dim=0)).sum()), variance, evaluations, failed=0)


def _estimates(prepared: PreparedModel, x: Tensor, seed: int) -> tuple[Tensor, int]:
    """Return an unbiased estimate of each log density, `(rows,)`, and the evaluations of G."""
    estimates = torch.empty_like(x[:, 0])
    evaluations = len(x)  # an evaluation of H counts as one of G
    for rows in torch.arange(len(x), device=x.device).split(NET_ROWS_PER_CHUNK):
        proposal = EncoderProposal.of(prepared.model, x[rows])
        keys = row_keys(x[rows].cpu().numpy(), seed)
        log_outside = prepared.model.log_outside(x[rows])
        doublings = np.floor(-np.log2(uniform_of_keys(keys)) / RARITY).clip(0, MOST_DOUBLINGS)
        for number in np.unique(doublings.astype(int)):
            chosen = np.flatnonzero(doublings == number)
            among = torch.from_numpy(chosen).to(x.device)
            points = FIRST_POINTS * 2 ** int(number)
            log_weights = net_log_weights(
                prepared.model, x[rows][among], proposal[among], keys[chosen], 0, points
            )
            log_mean = partial(_log_mean, prepared.model, log_outside[among])
            estimates[rows[among]] = _debiased(log_weights, int(number), log_mean)
            evaluations += points * len(chosen)
    return estimates, evaluations


def _debiased(log_weights: Tensor, doublings: int, log_mean: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the estimate from the first points, with what each doubling adds to it."""
    estimate = log_mean(log_weights[:, :FIRST_POINTS])
    for number in range(1, doublings + 1):
        half = FIRST_POINTS * 2 ** (number - 1)
        both, first, second = (
            log_mean(log_weights[:, points])
            for points in (slice(2 * half), slice(half), slice(half, 2 * half))
        )
        estimate += 2 ** (RARITY * number) * (both - 0.5 * (first + second))
    return estimate


def _log_mean(model: RoundtripModel, log_outside: Tensor, log_weights: Tensor) -> Tensor:
    """Return the log density by the mean of these weights."""
    log_integral = torch.logsumexp(log_weights, dim=1) - math.log(log_weights.shape[1])
    return with_outside(model, log_integral, torch.zeros_like(log_integral), log_outside)[0]
