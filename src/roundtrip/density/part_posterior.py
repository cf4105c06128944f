"""Draws of z given a part of a row and limits of further cells, with importance weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from roundtrip.density.adaptive import DEFAULT_EVALUATIONS, settled_proposal
from roundtrip.density.diagnostics import pareto_k, reliable
from roundtrip.density.mixture import StudentMixture
from roundtrip.density.outside import with_outside, with_outside_code
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.randomness import row_generators
from roundtrip.density.sampling import SamplingRequest, sample_rows
from roundtrip.density.weights import log_joints, weighted_estimate
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import Limit
from roundtrip.model.noise.limited import IMPOSSIBLE
from roundtrip.parameters import named_seed

TOL = 0.1
"""Tolerance at which the proposal of a row is found."""

MOST_REFITS, REFIT_DRAWS = 4, 4096
"""How often a proposal is refitted whose draws have uneven weights, and by how many draws."""

ROWS_AT_ONCE = 64
"""Rows whose proposals are found together; it limits the memory."""


@dataclass(frozen=True)
class WeightedCodes:
    """Draws of z with importance weights, and how reliable they are.

    Attributes
    ----------
    z : Tensor
        `(rows, draws, latent_dim)`. The last one stands for rows outside of the data and is NaN, if
        the model has such; see `RoundtripModel.outputs_of`.
    weights : Tensor
        `(rows, draws)`, which sum to 1.
    log_density, ess, pareto_k : Tensor
        Log density of what is known of a row, effective sample size and Pareto k, `(rows,)`.
    converged : Tensor
        Whether averages over the draws and their standard errors are reliable, `(rows,)` bool.
    """

    z: Tensor
    weights: Tensor
    log_density: Tensor
    ess: Tensor
    pareto_k: Tensor
    converged: Tensor

    def __getitem__(self, rows: Tensor) -> "WeightedCodes":
        """Return the draws of some of the rows."""
        return WeightedCodes(*(each[rows] for each in self._columns()))

    def replaced(self, rows: Tensor, others: "WeightedCodes") -> "WeightedCodes":
        """Return these draws with `others` in the rows marked by a mask."""
        pairs = zip(self._columns(), others._columns(), strict=True)
        return WeightedCodes(*(own.index_put((rows,), other) for own, other in pairs))

    @classmethod
    def joined(cls, parts: "Sequence[WeightedCodes]") -> "WeightedCodes":
        """Return the draws of all rows, one after the other."""
        columns = zip(*(part._columns() for part in parts), strict=True)
        return cls(*(torch.cat(column) for column in columns))

    def _columns(self) -> list[Tensor]:
        return [getattr(self, field.name) for field in fields(self)]

    @classmethod
    def of(
        cls, model: RoundtripModel, x: Tensor, z: Tensor, log_weights: Tensor
    ) -> "WeightedCodes":
        """Return draws with their log weights p(x, z) / q(z), and the code of rows outside."""
        log_integral, error, ess = weighted_estimate(log_weights)
        k = pareto_k(log_weights)
        codes, log_shares = with_outside_code(model, x, z, log_weights)
        log_density, _, negligible = with_outside(model, log_integral, error, model.log_outside(x))
        fine = reliable(log_density, ess, k, log_weights.shape[1]) | negligible
        return cls(codes, torch.softmax(log_shares, dim=1), log_density, ess, k, fine)

    @property
    def drawn(self) -> int:
        """Number of codes that are draws; that of rows outside of the data is none."""
        return self.z.shape[1] - bool(self.z[:, -1].isnan().any())


@dataclass(frozen=True)
class PartPosterior:
    """p(z | what is known of a row) of at most `ROWS_AT_ONCE` rows, as something to draw from.

    Attributes
    ----------
    model : RoundtripModel
        The model of observed cells and limits.
    x : Tensor
        Observed cells in scaled units, `(rows, features)`, NaN for all others.
    proposal : StudentMixture
        The settled proposals.
    """

    model: RoundtripModel
    x: Tensor
    proposal: StudentMixture

    @classmethod
    @torch.no_grad()
    def settled(
        cls, prepared: PreparedModel, x: Tensor, *, limits: Mapping[int, Limit], seed: int
    ) -> "PartPosterior":
        """Find the proposals of some rows.

        Parameters
        ----------
        prepared : PreparedModel
            Model without a context.
        x : Tensor
            Observed cells in scaled units, `(rows, features)`, NaN for all others.
        limits : mapping
            Limits of further cells, by the place of the feature.
        seed : int
            Seed of the draws.

        Returns
        -------
        PartPosterior
            The posteriors of these rows.
        """
        prepared = prepared.of_parts
        if not limits:
            proposal = settled_proposal(prepared, x, tol=TOL, seed=seed)
            return cls(prepared.model, x, proposal)
        model = prepared.model.limited(limits)
        request = SamplingRequest(
            model,
            prepared.bank(seed),
            TOL,
            DEFAULT_EVALUATIONS,
            seed,
            parts=prepared.part_encoder(),
        )
        _, proposal = sample_rows(request, x.double(), unusual=False)
        return cls(model, x, proposal)

    @torch.no_grad()
    def reliable_draws(
        self, count: int, *, seed: int, stream: str
    ) -> "tuple[PartPosterior, WeightedCodes]":
        """Draw `count` codes per row, with proposals that are refitted where weights are uneven.

        Draws that refit a proposal are not among those that are returned, with the posterior whose
        proposals they come from.
        """
        codes, proposal = self.draws(count, seed=seed, stream=stream), self.proposal
        for attempt in range(MOST_REFITS):
            failed = ~codes.converged
            if not failed.any():
                break
            part = PartPosterior(self.model, self.x[failed], proposal[failed])
            tried = part.draws(REFIT_DRAWS, seed=seed, stream=f"{stream}, refit {attempt}")
            refitted = part.proposal.refit(
                tried.z[:, :REFIT_DRAWS], tried.weights[:, :REFIT_DRAWS].log()
            )
            proposal = proposal.replaced(failed, refitted)
            part = PartPosterior(self.model, self.x[failed], refitted)
            again = part.draws(count, seed=seed, stream=f"{stream}, again {attempt}")
            codes = codes.replaced(failed, again)
        return PartPosterior(self.model, self.x, proposal), codes

    def draws(self, count: int, *, seed: int, stream: str) -> WeightedCodes:
        """Draw `count` codes per row; draws of different streams are independent."""
        generators = row_generators(self.x.cpu().numpy(), named_seed(seed, stream))
        z = self.proposal.sample(count, generators)
        log_weights = log_joints(self.model, self.x, z) - self.proposal.log_prob(z)
        return WeightedCodes.of(self.model, self.x, z, log_weights)

    def __getitem__(self, rows: Tensor) -> "PartPosterior":
        """Return the posteriors of some of the rows."""
        return PartPosterior(self.model, self.x[rows], self.proposal[rows])


def distinct_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct ones of rows with missing cells, and the place of each row among them.

    Examples
    --------
    >>> rows = torch.tensor([[1.0, torch.nan], [0.0, 2.0], [1.0, torch.nan]])
    >>> distinct_rows(rows)[1].tolist()
    [1, 0, 1]
    """
    # NaN differs from NaN, but rows with the same missing cells may be the same.
    both = torch.cat([x.nan_to_num(nan=0.0), x.isnan().to(x.dtype)], dim=1)
    distinct, group = torch.unique(both, dim=0, return_inverse=True)
    values, missing = distinct.tensor_split(2, dim=1)
    return values.masked_fill(missing > 0, torch.nan), group


def check_possible(log_density: Tensor, what: str) -> None:
    """Raise `ValueError` if conditions have no probability under the model."""
    impossible = log_density <= IMPOSSIBLE / 2
    if impossible.any():
        row = int(impossible.nonzero()[0, 0])
        where = "" if len(log_density) == 1 else f" (row number {row})"
        raise ValueError(
            f"{what} has no probability under the model{where}: its conditions contradict each "
            "other, or lie far from all data"
        )
