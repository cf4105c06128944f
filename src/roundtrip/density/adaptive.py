"""Adaptive importance sampling: each row is sampled until its log density is known to a tolerance.

Every row starts with a mixture of Student t components: around the encoder's posterior if it has
one (and the best of a bank of prior draws if that looks wrong), else around maxima of p(x, z) that
are climbed from H(x) and from the bank (the posterior of an adversarially trained G often has
several modes, and H knows only one); and the prior itself, which bounds the weights. Draws come in
rounds. While the weights are uneven, the mixture is refitted to all draws so far and tried out
anew. When it is settled, the draws that tried it out tell how many are needed, and so many are made
for the estimate. (Should these show the proposal to be poor, all begins anew; should they turn out
too few, more are made.)

The estimate consists of these alone, each weighted by the density it was drawn from, and is
therefore unbiased given its proposal and their number. Weighting earlier draws by a mixture that
was fitted to them would pull it down, the more, the more latent dimensions there are. Counting the
draws of the trial, and stopping as soon as the error seems small enough, would pull it up: weights
are bounded above rather than below, so that an error seems small when the estimate is high (0.008
nats at a tolerance of 0.05, on the mixture of Fig. 2).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from rich.progress import Progress
from torch import Tensor

from roundtrip.density.diagnostics import pareto_k, reliable_k
from roundtrip.density.mixture import StudentMixture
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.randomness import row_generators
from roundtrip.density.result import DensityEstimate
from roundtrip.density.starts import Bank, first_proposal, most_start_evaluations
from roundtrip.density.weights import log_joints, weighted_estimate
from roundtrip.io.progress import scoring_bar
from roundtrip.model.core import RoundtripModel

DEFAULT_EVALUATIONS = 20_000
FIRST_ROUND = 96
GOOD_EFFICIENCY = 0.2
"""Share of the precision of a perfect proposal above which a proposal is left as it is."""

SPARE = 1.3
"""Draws that are made for each that the trial says are needed: its word is uncertain."""

MAX_REFITS = 12
SMALLEST_ESS = 5.0
SECOND_SEED = 2**40
SAME = 4.0
"""Standard errors by which two estimates of a row may differ."""

LARGEST_LOG_DENSITY = 1e12
"""Beyond, the digits of a float64 do not reach down to the tolerance."""

MAX_FITTED_DRAWS = 2**13
"""Draws of a row that are kept for refitting; later ones only add to the estimate."""

NUMBERS_PER_CHUNK = 2**25
"""Limits the rows that are sampled together, and thereby memory."""


def adaptive(
    prepared: PreparedModel,
    x: Tensor,
    *,
    tol: float,
    max_evaluations: int,
    seed: int,
    verbose: bool = False,
) -> DensityEstimate:
    """Estimate log p(x) for `(rows, features)` points to a standard error of `tol` nats each."""
    model = prepared.model
    smallest = most_start_evaluations(model) + FIRST_ROUND
    if max_evaluations < smallest:
        raise ValueError(
            f"max_evaluations must be at least {smallest} for {model.latent_dim} latent "
            f"dimensions, got {max_evaluations}"
        )
    x = x.double()
    with scoring_bar(enabled=verbose) as progress:
        columns = _sample(model, x, prepared.bank(seed), tol, max_evaluations, seed, progress)
        # Where the encoder is lost, a proposal may miss most of p(x) without a sign of it: what is
        # certified must be found a second time, from other draws.
        doubtful = columns.pop("unusual") & columns["converged"]
        half = max_evaluations // 2
        confirmable = doubtful & (columns["n_evaluations"] <= half) & (half >= smallest)
        if confirmable.any():
            other = (seed + SECOND_SEED) % 2**63
            again = _sample(
                model,
                x[confirmable],
                prepared.bank(other),
                tol,
                half,
                other,
                progress,
                description="scoring unusual rows again",
            )
            _confirm(columns, confirmable, again)
        columns["converged"] &= ~doubtful | confirmable
    arrays: dict[str, Any] = {name: column.cpu().numpy() for name, column in columns.items()}
    return DensityEstimate(**arrays, method="adaptive")


def _confirm(columns: dict[str, Tensor], rows: Tensor, again: dict[str, Tensor]) -> None:
    """Take in a second estimate of some rows; they stay converged where both agree."""
    first = {name: column[rows] for name, column in columns.items()}
    gap = again["log_density"] - first["log_density"]
    agree = gap.abs() <= SAME * torch.hypot(first["std_error"], again["std_error"])
    # What is missed is missing from the lower one.
    better = ~agree & (gap > 0)
    for name, column in columns.items():
        column[rows] = torch.where(better, again[name], first[name])
    columns["converged"][rows] = first["converged"] & again["converged"] & agree
    columns["n_evaluations"][rows] = first["n_evaluations"] + again["n_evaluations"]


def _sample(
    model: RoundtripModel,
    x: Tensor,
    bank: Bank,
    tol: float,
    max_evaluations: int,
    seed: int,
    progress: Progress,
    description: str = "scoring",
) -> dict[str, Tensor]:
    """Estimates of all rows, chunk by chunk."""
    chunk_rows = max(16, min(512, NUMBERS_PER_CHUNK // (MAX_FITTED_DRAWS * model.latent_dim)))
    parts = []
    task = progress.add_task(description, total=len(x))
    for chunk in x.split(chunk_rows):
        parts.append(_sample_chunk(model, chunk, bank, tol, max_evaluations, seed)[0])
        progress.advance(task, len(chunk))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def settled_proposal(
    prepared: PreparedModel, x: Tensor, *, tol: float = 0.05, seed: int = 0
) -> StudentMixture:
    """The mixture from which the draws that count were made, one for each row of x."""
    return _sample_chunk(
        prepared.model, x.double(), prepared.bank(seed), tol, DEFAULT_EVALUATIONS, seed
    )[1]


@dataclass
class _Sampling:
    """The rows that are still being sampled and all that is known about them."""

    rows: Tensor
    """Their places in the chunk."""
    proposal: StudentMixture
    log_weights: Tensor
    """`(rows, n)`, each draw weighted by the proposal it came from."""
    first: Tensor
    """The draw from which on a row's draws count."""
    goal: Tensor
    """The draw at which a row ends; 0 while its proposal is tried out."""
    refits: Tensor
    draws: Tensor
    """`(rows, n, latent_dim)`, with `log_joint` and `history` kept for refitting."""
    log_joint: Tensor
    history: list[tuple[StudentMixture, int]] = field(default_factory=list)

    def keep(self, where: Tensor) -> None:
        """Go on with some of the rows only."""
        self.rows, self.proposal = self.rows[where], self.proposal[where]
        self.log_weights, self.first = self.log_weights[where], self.first[where]
        self.goal = self.goal[where]
        self.refits, self.draws = self.refits[where], self.draws[where]
        self.log_joint = self.log_joint[where]
        self.history = [(used[where], n) for used, n in self.history]

    def add(self, draws: Tensor, log_joint: Tensor) -> None:
        """Take in a round of draws from the present proposal."""
        n_before, n_new = self.log_weights.shape[1], draws.shape[1]
        log_weights = log_joint - self.proposal.log_prob(draws)
        self.log_weights = torch.cat([self.log_weights, log_weights], dim=1)
        if n_before + n_new <= MAX_FITTED_DRAWS:
            self.draws = torch.cat([self.draws, draws], dim=1)
            self.log_joint = torch.cat([self.log_joint, log_joint], dim=1)
            self.history.append((self.proposal, n_new))

    def refit(self, where: Tensor) -> None:
        """Fit the proposals of some rows to all their draws, to be tried out anew."""
        if not where.any():
            return
        draws = self.draws[where]
        # Only here are draws weighted by proposals they did not come from: by the mixture of all
        # proposals. The fit profits from all draws, and its small bias does not reach the estimate.
        log_used = [used[where].log_prob(draws) + math.log(n) for used, n in self.history]
        log_weights = self.log_joint[where] - torch.logsumexp(torch.stack(log_used), dim=0)
        self.proposal = self.proposal.replaced(
            where, self.proposal[where].refit(draws, log_weights)
        )
        self.first = torch.where(where, self.log_weights.shape[1], self.first)
        self.goal = torch.where(where, 0, self.goal)
        self.refits = self.refits + where.long()

    def settle(self, where: Tensor, needed: Tensor, budget: int) -> None:
        """Set the goal of some rows, of which `needed` draws are estimated to suffice."""
        drawn = self.log_weights.shape[1]
        start = torch.where(self.goal == 0, drawn, self.first)
        affordable = start + needed <= budget
        # All draws of a row that will not get as far count: the budget ends them, not their luck.
        self.first = torch.where(where & affordable, start, self.first)
        goal = torch.where(affordable, start + needed, budget)
        self.goal = torch.where(where, goal, self.goal)


@torch.no_grad()
def _sample_chunk(
    model: RoundtripModel,
    x: Tensor,
    bank: Bank,
    tol: float,
    max_evaluations: int,
    seed: int,
) -> tuple[dict[str, Tensor], StudentMixture]:
    """The columns of a `DensityEstimate` and which rows are unusual; each row's last proposal."""
    generators = row_generators(x.cpu().numpy(), seed)
    first = first_proposal(model, x, bank)
    proposal = first.mixture
    budget = max_evaluations - most_start_evaluations(model)
    rows = torch.arange(len(x), device=x.device)
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
    result: dict[str, Tensor] = {"unusual": first.unusual}
    settled = proposal
    drawn = 0
    for n_new in _round_sizes(budget):
        draws = state.proposal.sample(n_new, [generators[row] for row in state.rows.tolist()])
        state.add(draws, log_joints(model, x[state.rows], draws))
        drawn += n_new
        values = _assess(state.log_weights, state.first)
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
        poor = (1 / (1 + variance) < GOOD_EFFICIENCY) | ((undecided | precise) & ~reliable)
        poor &= (state.refits < MAX_REFITS) & torch.full_like(poor, drawn <= MAX_FITTED_DRAWS)
        needed = torch.nan_to_num(SPARE * variance / tol**2, nan=math.inf)
        needed = needed.clamp(1, budget + 1).ceil().long()
        state.settle(undecided & ~poor, needed, budget)
        state.keep(~finished)
        state.refit(poor[~finished])
    return result, settled


def _round_sizes(budget: int) -> Iterator[int]:
    """Draws of each round: small at first, then growing with what is already spent."""
    spent = 0
    while spent < budget:
        size = max(FIRST_ROUND, spent // 3 // FIRST_ROUND * FIRST_ROUND)
        if budget - spent - size < size:
            size = budget - spent  # no small remainder: a refit before it would leave it alone
        yield size
        spent += size


def _assess(log_weights: Tensor, first: Tensor) -> dict[str, Tensor]:
    """Estimates from the draws of each row that count: from number `first` on."""
    result: dict[str, Tensor] = {}
    for start in first.unique().tolist():  # a handful: refits happen between rounds only
        among = first == start
        counted = log_weights[among, start:]
        log_density, _, ess = weighted_estimate(counted)
        k = pareto_k(counted)
        values = {
            "log_density": log_density,
            "std_error": _stratified_std_error(counted),
            "ess": ess,
            "pareto_k": k,
            "reliable": (k <= reliable_k(counted.shape[1]))
            & (ess >= SMALLEST_ESS)
            & (log_density.abs() <= LARGEST_LOG_DENSITY),
        }
        for name, value in values.items():
            result.setdefault(name, value.new_zeros(len(first)))[among] = value
    return result


def _stratified_std_error(log_weights: Tensor) -> Tensor:
    """Standard error of the log of the mean weight of `(rows, n)` draws sorted by component.

    Components are sampled in proportion, so only the spread within a component makes an error.
    Neighbouring draws are mostly of one component: their differences show that spread.
    """
    n = log_weights.shape[1]
    relative = n * torch.softmax(log_weights, dim=1)
    variance = relative.diff(dim=1).square().sum(1) / (2 * (n - 1))
    return torch.sqrt(variance / n)
