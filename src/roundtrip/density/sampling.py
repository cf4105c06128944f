"""Adaptive importance sampling: eq. (5) with a proposal fitted to each row, up to a tolerance.

The proposal of a row is a mixture of Student t components. With an encoder that gives a posterior,
they lie around that posterior, around one that is refined for the row, and around the best of a
bank of prior draws if the posterior looks wrong. Otherwise they lie around maxima of p(x, z), found
from H(x) and from the bank, because the posterior of an adversarially trained G often has several
modes and H gives only one. The prior is always a component, so that the weights are bounded.

Draws come in rounds. While the weights are uneven, the mixture is refitted to all draws so far and
tested by a new trial round. Once the weights are even enough, the trial gives the number of draws
needed, and that many new draws make the estimate. If these show that the proposal is poor, it is
refitted again; if they are too few, more are added.

Trial draws do not enter the estimate, and each draw is weighted by the density it was drawn from.
The estimate of p(x) is therefore unbiased given the proposal and the number of draws. Weights of
earlier draws under a mixture that was fitted to them would bias it downwards, and more so in more
latent dimensions. Counting the trial draws, or stopping as soon as the standard error is small,
would bias it upwards (by 0.008 nats at a tolerance of 0.05 on the mixture of Fig. 2): weights are
bounded above but not below, so that the standard error looks small when the estimate is high.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from roundtrip.density.diagnostics import pareto_k, reliable
from roundtrip.density.mixture import StudentMixture
from roundtrip.density.outside import with_outside
from roundtrip.density.part_encoder import PartEncoder
from roundtrip.density.randomness import row_generators
from roundtrip.density.starts import Bank, first_proposal, most_start_evaluations
from roundtrip.density.weights import log_joints, weighted_estimate
from roundtrip.model.core import RoundtripModel

FIRST_ROUND = 96
GOOD_EFFICIENCY = 0.2
"""Efficiency relative to a perfect proposal above which a proposal is not refitted."""

FEW_DRAWS = 1000
"""Draws that a row with a refined posterior may need without a refit of its proposal."""

SPARE = 1.3
"""Factor on the number of draws that the trial estimates, because that estimate is uncertain."""

REFINING_BUDGET = 2
"""Smallest budget, in evaluations of a refinement, at which posteriors are refined."""

MAX_REFITS = 12
MAX_FITTED_DRAWS = 2**13
"""Draws per row that are kept for refitting; later ones only enter the estimate."""


@dataclass(frozen=True)
class SamplingRequest:
    """Model, bank, tolerance, budget and seed of adaptive sampling.

    Attributes
    ----------
    model : RoundtripModel
        The model.
    bank : Bank
        Bank of the model.
    tol : float
        Standard error in nats at which sampling of a row stops.
    max_evaluations : int
        Largest number of evaluations of G per row.
    seed : int
        Seed of the draws.
    refines : bool, default=False
        Whether posteriors are refined for each usual row, if the budget allows it.
    parts : PartEncoder or None, default=None
        What knows the posterior of parts of rows, if the rows are such.
    """

    model: RoundtripModel
    bank: Bank
    tol: float
    max_evaluations: int
    seed: int
    refines: bool = False
    parts: PartEncoder | None = None


@dataclass
class _Sampling:
    """State of the rows that are still being sampled."""

    rows: Tensor
    """Their indices in the chunk."""
    proposal: StudentMixture
    log_weights: Tensor
    """`(rows, n)`, the weight of each draw under the proposal it was drawn from."""
    first: Tensor
    """Index of the first draw of each row that enters the estimate."""
    goal: Tensor
    """Number of draws at which a row ends; 0 during trials of its proposal."""
    refits: Tensor
    draws: Tensor
    """`(rows, n, latent_dim)`; kept for refitting, like `log_joint` and `history`."""
    log_joint: Tensor
    history: list[tuple[StudentMixture, int]] = field(default_factory=list)

    def keep(self, where: Tensor) -> None:
        """Keep some of the rows only."""
        self.rows, self.proposal = self.rows[where], self.proposal[where]
        self.log_weights, self.first = self.log_weights[where], self.first[where]
        self.goal = self.goal[where]
        self.refits, self.draws = self.refits[where], self.draws[where]
        self.log_joint = self.log_joint[where]
        self.history = [(used[where], n) for used, n in self.history]

    def add(self, draws: Tensor, log_joint: Tensor) -> None:
        """Add a round of draws from the current proposal."""
        n_before, n_new = self.log_weights.shape[1], draws.shape[1]
        log_weights = log_joint - self.proposal.log_prob(draws)
        self.log_weights = torch.cat([self.log_weights, log_weights], dim=1)
        if n_before + n_new <= MAX_FITTED_DRAWS:
            self.draws = torch.cat([self.draws, draws], dim=1)
            self.log_joint = torch.cat([self.log_joint, log_joint], dim=1)
            self.history.append((self.proposal, n_new))

    def refit(self, where: Tensor) -> None:
        """Refit the proposals of some rows to all their draws; a new trial follows."""
        if not where.any():
            return
        draws = self.draws[where]
        # Draws are weighted by the mixture of all earlier proposals, so that the fit uses all of
        # them. The small bias of these weights does not enter the estimate.
        log_used = [used[where].log_prob(draws) + math.log(n) for used, n in self.history]
        log_weights = self.log_joint[where] - torch.logsumexp(torch.stack(log_used), dim=0)
        self.proposal = self.proposal.replaced(
            where, self.proposal[where].refit(draws, log_weights)
        )
        self.first = torch.where(where, self.log_weights.shape[1], self.first)
        self.goal = torch.where(where, 0, self.goal)
        self.refits = self.refits + where.long()

    def settle(self, where: Tensor, needed: Tensor, budget: int) -> None:
        """Set the goal of some rows to `needed` draws, the estimated number for the tolerance."""
        drawn = self.log_weights.shape[1]
        start = torch.where(self.goal == 0, drawn, self.first)
        affordable = start + needed <= budget
        # Rows that can't reach the tolerance count all draws: only the budget stops them.
        self.first = torch.where(where & affordable, start, self.first)
        goal = torch.where(affordable, start + needed, budget)
        self.goal = torch.where(where, goal, self.goal)


@torch.no_grad()
def sample_rows(
    request: SamplingRequest, x: Tensor, *, unusual: bool
) -> tuple[dict[str, Tensor], StudentMixture]:
    """Estimate rows of x, all of them usual or all unusual.

    Parameters
    ----------
    request : SamplingRequest
        Model, bank, tolerance, budget and seed.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    unusual : bool
        Whether the encoder does not know these rows.

    Returns
    -------
    columns : dict of Tensor
        Columns of a `DensityEstimate`.
    proposal : StudentMixture
        The last proposals.
    """
    model, tol = request.model, request.tol
    generators = row_generators(x.cpu().numpy(), request.seed)
    starts = most_start_evaluations(model, unusual=unusual, refines=True)
    refines = request.refines and request.max_evaluations >= REFINING_BUDGET * starts
    first = first_proposal(
        model, x, request.bank, unusual=unusual, refines=refines, parts=request.parts
    )
    proposal = first.mixture
    starts = most_start_evaluations(model, unusual=unusual, refines=refines)
    budget = request.max_evaluations - starts
    rows = torch.arange(len(x), device=x.device)
    log_outside = model.log_outside(x)
    empty = x.new_empty(len(x), 0)
    state = _Sampling(
        rows=rows,
        proposal=proposal,
        log_weights=empty,
        first=torch.zeros_like(rows),
        goal=torch.zeros_like(rows),
        refits=torch.zeros_like(rows),
        draws=x.new_empty(len(x), 0, model.latent_dim),
        log_joint=empty,
    )
    result: dict[str, Tensor] = {}
    settled = proposal
    drawn = 0
    for n_new in _round_sizes(budget):
        draws = state.proposal.sample(n_new, [generators[row] for row in state.rows.tolist()])
        state.add(draws, log_joints(model, x[state.rows], draws))
        drawn += n_new
        values = _assess(model, state.log_weights, state.first, log_outside[state.rows])
        precise, reliable = values["std_error"] <= tol, values.pop("reliable")
        values["converged"] = precise & reliable
        values["n_evaluations"] = first.evaluations[state.rows] + drawn
        at_goal = (state.goal > 0) & (state.goal <= drawn)
        finished = (at_goal & values["converged"]) | torch.full_like(precise, drawn >= budget)
        for name, value in values.items():
            column = result.setdefault(name, value.new_zeros(len(x)))
            column[state.rows[finished]] = value[finished]
        among = torch.isin(rows, state.rows[finished])
        settled = settled.replaced(among, state.proposal[finished])
        if finished.all():
            break
        variance = (drawn - state.first) * values["std_error"].square()  # of one weight
        undecided = (state.goal == 0) | at_goal
        needed = torch.nan_to_num(SPARE * variance / tol**2, nan=math.inf)
        needed = needed.clamp(1, budget + 1).ceil().long()
        poor = 1 / (1 + variance) < GOOD_EFFICIENCY
        if refines:  # a refit to a few draws is seldom better
            poor = (poor & (needed > FEW_DRAWS)) | (at_goal & ~reliable)
        else:
            poor |= (undecided | precise) & ~reliable
        poor &= (state.refits < MAX_REFITS) & torch.full_like(poor, drawn <= MAX_FITTED_DRAWS)
        state.settle(undecided & ~poor, needed, budget)
        state.keep(~finished)
        state.refit(poor[~finished])
    return result, settled


def _round_sizes(budget: int) -> Iterator[int]:
    """Yield the number of draws of each round, which grows with the number already made."""
    spent = 0
    while spent < budget:
        size = max(FIRST_ROUND, spent // 3 // FIRST_ROUND * FIRST_ROUND)
        if budget - spent - size < size:
            size = budget - spent  # after a refit, a small last round would be the whole estimate
        yield size
        spent += size


def _assess(
    model: RoundtripModel, log_weights: Tensor, first: Tensor, log_outside: Tensor
) -> dict[str, Tensor]:
    """Estimate each row from its draws that count, those from index `first` on."""
    result: dict[str, Tensor] = {}
    for start in first.unique().tolist():  # few values, because refits happen between rounds
        among = first == start
        counted = log_weights[among, start:]
        log_integral, _, ess = weighted_estimate(counted)
        log_density, std_error, negligible = with_outside(
            model, log_integral, _stratified_std_error(counted), log_outside[among]
        )
        k = pareto_k(counted)
        values = {
            "log_density": log_density,
            "std_error": std_error,
            "ess": ess,
            "pareto_k": k,
            "reliable": reliable(log_density, ess, k, counted.shape[1]) | negligible,
        }
        for name, value in values.items():
            result.setdefault(name, value.new_zeros(len(first)))[among] = value
    return result


def _stratified_std_error(log_weights: Tensor) -> Tensor:
    """Return the standard error of the log mean weight of `(rows, n)` draws sorted by component.

    Components are sampled in proportion to their weights, so that only the variance within
    components counts. Neighbouring draws mostly share a component, and their differences estimate
    that variance.
    """
    n = log_weights.shape[1]
    relative = n * torch.softmax(log_weights, dim=1)
    variance = relative.diff(dim=1).square().sum(1) / (2 * (n - 1))
    return torch.sqrt(variance / n)
