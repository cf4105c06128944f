"""Probabilities of ranges and levels given a part of a row, by draws that two integrals share.

P(event | given) = P(event, given) / P(given). Half of the draws of z come from the proposal for the
numerator, half from that for the denominator, and all are weighted by the mean of both densities.
So rare events have enough draws, and errors that both integrals share cancel.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from roundtrip.density.diagnostics import pareto_k, reliable
from roundtrip.density.outside import NEGLIGIBLE, error_of_average, with_outside_code
from roundtrip.density.part_posterior import ROWS_AT_ONCE, PartPosterior, check_possible
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.randomness import row_generators
from roundtrip.density.weights import log_joints, log_likelihoods, weighted_estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import Limit
from roundtrip.parameters import named_seed

FEWEST, MOST = 1024, 2**17
"""Draws per row."""

SPARE = 1.3
"""Factor on the number of draws that a trial estimates, because that estimate is uncertain."""


@dataclass(frozen=True, repr=False)
class ProbabilityEstimate:
    """Probabilities with standard errors and diagnostics, one entry per row of conditions.

    Attributes
    ----------
    probability, std_error : numpy.ndarray
        Probabilities and their standard errors, `(rows,)`.
    ess : numpy.ndarray
        Effective sample sizes of the draws of z, `(rows,)`: the smaller one of both integrals.
    pareto_k : numpy.ndarray
        Tail shapes of the importance weights, `(rows,)`; above 0.7 a row is unreliable.
    converged : numpy.ndarray
        Whether the standard error is reliable and within the tolerance, `(rows,)` bool.
    index : pandas.Index or None
        Row labels for `to_frame`. With None rows are numbered from 0.

    Examples
    --------
    >>> columns = (np.array([each]) for each in (0.25, 0.01, 900.0, 0.2, True))
    >>> p = ProbabilityEstimate(*columns)
    >>> p, float(p), p.to_frame().shape
    (<ProbabilityEstimate: 0.25 ± 0.01>, 0.25, (1, 5))
    """

    probability: np.ndarray
    std_error: np.ndarray
    ess: np.ndarray
    pareto_k: np.ndarray
    converged: np.ndarray
    index: pd.Index | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with a column for each attribute except `index`."""
        names = [field.name for field in fields(self) if field.name != "index"]
        return pd.DataFrame({name: getattr(self, name) for name in names}, index=self.index)

    def __float__(self) -> float:
        if len(self.probability) != 1:
            raise TypeError(f"there are {len(self.probability)} probabilities, not one")
        return float(self.probability[0])

    def __repr__(self) -> str:
        each = zip(self.probability[:5], self.std_error[:5], strict=True)
        listed = ", ".join(f"{p:.4g} ± {error:.2g}" for p, error in each)
        failed = int((~self.converged).sum())
        listed += ", ..." if len(self.probability) > 5 else ""
        return f"<ProbabilityEstimate: {listed}{f'; {failed} did not converge' * bool(failed)}>"


@torch.no_grad()
def probabilities_given(
    prepared: PreparedModel,
    x: Tensor,
    limits: Mapping[int, Limit],
    event: Tensor,
    event_limits: Mapping[int, Limit],
    *,
    tol: float,
    seed: int,
) -> dict[str, Tensor]:
    """Estimate the probability of an event given observed cells and limits.

    Parameters
    ----------
    prepared : PreparedModel
        Model without a context.
    x : Tensor
        Given cells in scaled units, `(rows, features)`, NaN for all others.
    limits : mapping
        Limits of further given cells, by the place of the feature.
    event : Tensor
        Cells of the event, `(1, features)`, NaN for all others.
    event_limits : mapping
        Limits of the event.
    tol : float
        Standard error relative to the probability.
    seed : int
        Seed of the draws.

    Returns
    -------
    dict of Tensor
        Columns of a `ProbabilityEstimate`.
    """
    parts = []
    for block in x.split(ROWS_AT_ONCE):
        both = torch.where(event.isnan(), block, event)
        pair = _Pair(
            PartPosterior.settled(prepared, block, limits=limits, seed=seed),
            PartPosterior.settled(prepared, both, limits={**limits, **event_limits}, seed=seed),
            prepared.of_parts.model.limited(event_limits),
            event.expand_as(block),
        )
        parts.append(pair.estimated(tol, seed))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True)
class _Pair:
    """The posteriors of z without and with the event, of some rows."""

    given: PartPosterior
    both: PartPosterior
    event_model: RoundtripModel
    event: Tensor

    def estimated(self, tol: float, seed: int) -> dict[str, Tensor]:
        """Return estimates from as many draws as a trial tells, or more if these are too few."""
        trial = self._from_draws(FEWEST, tol, named_seed(seed, "trial of a probability"))
        excess = SPARE * (trial["std_error"] / (tol * trial["probability"])).square()
        doublings = excess.nan_to_num(nan=0.0, posinf=math.inf).clamp_min(1).log2().ceil()
        most = math.log2(MOST / FEWEST)
        doublings = doublings.clamp_max(most)
        result = {name: torch.zeros_like(column) for name, column in trial.items()}
        left = torch.ones_like(result["converged"])
        while left.any():
            for power in doublings[left].unique().tolist():
                among = left & (doublings == power)
                pair = _Pair(
                    self.given[among], self.both[among], self.event_model, self.event[among]
                )
                count = FEWEST * 2 ** int(power)
                again = named_seed(seed, f"{count} draws")
                for name, values in pair._from_draws(count, tol, again).items():
                    result[name][among] = values
            certain = result["converged"] | (result["probability"] == 0)
            left = left & ~certain & (doublings < most)
            doublings = torch.where(left, doublings + 1, doublings)
        return result

    def _from_draws(self, count: int, tol: float, seed: int) -> dict[str, Tensor]:
        """Return estimates from this many draws, half of them for each integral."""
        z = torch.cat(
            [
                _draws(self.given, count // 2, named_seed(seed, "given")),
                _draws(self.both, count // 2, named_seed(seed, "event")),
            ],
            dim=1,
        )
        log_q = [each.proposal.log_prob(z) for each in (self.given, self.both)]
        log_given = log_joints(self.given.model, self.given.x, z)
        log_given = log_given - (torch.logaddexp(*log_q) - math.log(2))
        log_event = log_likelihoods(self.event_model, self.event, z)
        below, _, ess = weighted_estimate(log_given)
        above, _, ess_event = weighted_estimate(log_given + log_event)
        k, k_event = pareto_k(log_given), pareto_k(log_given + log_event)
        codes, log_shares = with_outside_code(self.given.model, self.given.x, z, log_given)
        check_possible(log_shares.logsumexp(dim=1), "given=")
        if codes.shape[1] > z.shape[1]:
            of_outside = self.event_model.outside_factors(self.event).sum(-1)
            log_event = torch.cat([log_event, of_outside[:, None]], dim=1)
        weights, values = torch.softmax(log_shares, dim=1), log_event.exp()
        probability = (weights * values).sum(1)
        error = error_of_average(weights, values, drawn=z.shape[1])
        fine = reliable(below, ess, k, count) & reliable(above, ess_event, k_event, count)
        # Diagnostics of draws say nothing if rows outside of the data are all there is.
        fine |= log_shares[:, : z.shape[1]].logsumexp(dim=1) < log_shares[:, -1] - NEGLIGIBLE
        return {
            "probability": probability,
            "std_error": error,
            "ess": torch.minimum(ess, ess_event),
            "pareto_k": torch.fmax(k, k_event),
            "converged": fine & (error <= tol * probability),
        }


def _draws(posterior: PartPosterior, count: int, seed: int) -> Tensor:
    return posterior.proposal.sample(count, row_generators(posterior.x.cpu().numpy(), seed))
