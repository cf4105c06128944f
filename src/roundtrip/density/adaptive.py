"""The default estimate: nets for rows that the encoder knows, adaptive sampling for all others.

Rows that the encoder does not know are estimated twice, and converge if both estimates agree.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from rich.progress import Progress, TaskID
from torch import Tensor

from roundtrip.density.mixture import StudentMixture
from roundtrip.density.outside import OUTSIDE_EVALUATIONS, outside_rows
from roundtrip.density.posterior_nets import MOST_NET_EVALUATIONS, by_nets
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.result import DensityEstimate
from roundtrip.density.sampling import (
    FIRST_ROUND,
    MAX_FITTED_DRAWS,
    SamplingRequest,
    sample_rows,
)
from roundtrip.density.starts import most_start_evaluations, unusual_rows
from roundtrip.io.progress import scoring_bar
from roundtrip.parameters import named_seed

DEFAULT_EVALUATIONS = 20_000
SAME = 4.0
"""Largest difference, in standard errors, between two estimates of a row that agree."""

ROUNDING = 1e-4
"""Difference in nats that rounding may explain: networks compute in float32."""

OF_TWO = math.sqrt(2)
"""Tolerance of each of two estimates, in units of that of their mean."""

NET_ROWS_PER_CHUNK = 512
NUMBERS_PER_CHUNK = 2**25
"""Limits the number of rows that are sampled together, and so the memory."""

WEIGHT_COPIES = 16
"""Arrays of the size of all weights that an estimate takes at a time."""


def adaptive(
    prepared: PreparedModel,
    x: Tensor,
    *,
    tol: float,
    max_evaluations: int,
    seed: int,
    confirm: bool = True,
    verbose: bool = False,
) -> DensityEstimate:
    """Estimate log p(x) of each row to a standard error of `tol`.

    Parameters
    ----------
    prepared : PreparedModel
        The model and its banks.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    tol : float
        Standard error in nats at which sampling of a row stops.
    max_evaluations : int
        Largest number of evaluations of G per row.
    seed : int
        Seed of the draws.
    confirm : bool, default=True
        Whether rows that the encoder does not know are estimated twice. A mean over many rows does
        not need it.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    DensityEstimate
        One entry per row.
    """
    model = prepared.model
    smallest, smallest_unusual = (
        most_start_evaluations(model, unusual=unusual) + FIRST_ROUND for unusual in (False, True)
    )
    if max_evaluations < smallest:
        raise ValueError(
            f"max_evaluations must be at least {smallest} for this model, got {max_evaluations}"
        )
    x = x.double()
    missing = x.isnan().any(dim=1)
    if missing.any() and model.inputs is None:
        return _with_parts_of_rows(
            prepared, x, missing, tol=tol, max_evaluations=max_evaluations, seed=seed,
            confirm=confirm, verbose=verbose,
        )  # fmt: skip
    bank = prepared.bank(seed)
    of_parts = ~model.knows_pattern(x)
    unusual = unusual_rows(model, x, bank) & ~of_parts
    with scoring_bar(enabled=verbose) as progress:
        task = progress.add_task("scoring", total=len(x))
        request = SamplingRequest(model, bank, tol, max_evaluations, seed)
        columns: dict[str, Tensor] = {
            "converged": torch.zeros_like(unusual),
            "n_evaluations": torch.zeros(len(x), dtype=torch.int64, device=x.device),
        }
        known = ~unusual & ~of_parts
        looks = model.outside_share and model.has_posterior and unusual.any()
        if looks and max_evaluations >= smallest_unusual + OUTSIDE_EVALUATIONS:
            _find_outside(columns, request, x, unusual)
            unusual = unusual & ~columns["converged"]
            progress.advance(task, int(columns["converged"].sum()))
        affordable = max_evaluations >= smallest + MOST_NET_EVALUATIONS
        if affordable and prepared.nets and known.any() and prepared.net_variance.is_finite:
            # Nets were measured on rows with cells missing as in training.
            _by_nets(columns, prepared, x, known, request, progress, task)
        spent, left = columns["n_evaluations"].clone(), ~columns["converged"]
        for kind in (unusual, known, of_parts):
            among = left & kind
            if not among.any():
                continue
            # One budget for all, so that they are sampled together. It does not follow from what
            # they spent: a row's density must not depend on other rows.
            most_spent = OUTSIDE_EVALUATIONS if kind is unusual else MOST_NET_EVALUATIONS
            budget = max_evaluations - most_spent * bool(spent[among].any())
            climbs = kind is unusual and budget >= smallest_unusual
            refines = kind is known and prepared.refines
            learns = kind is of_parts and prepared.scored_often
            parts = prepared.part_encoder(verbose) if learns else None
            of_one = OF_TWO * tol if kind is unusual and confirm else tol
            rest = replace(
                request, tol=of_one, max_evaluations=budget, refines=refines, parts=parts
            )
            sampled = _sample(rest, x[among], climbs, progress, task)
            sampled["n_evaluations"] += spent[among]
            for name, values in sampled.items():
                columns.setdefault(name, values.new_zeros(len(x)))[among] = values
        # For rows that the encoder does not know, a proposal may miss most of p(x) and the
        # diagnostics not show it. Such a row converges only if a second estimate agrees.
        doubtful = unusual & columns["converged"] & confirm
        half = max_evaluations // 2
        confirmable = doubtful & (columns["n_evaluations"] <= half) & (half >= smallest_unusual)
        if confirmable.any():
            other = named_seed(seed, "confirmation")
            again = SamplingRequest(model, prepared.bank(other), OF_TWO * tol, half, other)
            task = progress.add_task("scoring unusual rows again", total=int(confirmable.sum()))
            second = _sample(again, x[confirmable], True, progress, task)
            _confirm(columns, confirmable, second)
        columns["converged"] &= ~doubtful | confirmable
    arrays: dict[str, Any] = {name: column.cpu().numpy() for name, column in columns.items()}
    return DensityEstimate(**arrays, method="adaptive")


def _with_parts_of_rows(
    prepared: PreparedModel, x: Tensor, missing: Tensor, **settings: Any
) -> DensityEstimate:
    """Estimate complete rows as always, and the others by the model of observed cells."""
    parts = [
        (rows, adaptive(of, x[rows], **settings))
        for rows, of in ((~missing, prepared), (missing, prepared.observed))
        if rows.any()
    ]
    order = torch.cat([rows.nonzero()[:, 0] for rows, _ in parts]).argsort().cpu().numpy()
    return DensityEstimate.joined([result for _, result in parts]).taken(order)


def _find_outside(
    columns: dict[str, Tensor], request: SamplingRequest, x: Tensor, unusual: Tensor
) -> None:
    """Estimate those unusual rows that lie outside of the data for certain."""
    for rows in unusual.nonzero()[:, 0].split(NET_ROWS_PER_CHUNK):
        outside, found = outside_rows(request.model, x[rows], request.bank, seed=request.seed)
        columns["n_evaluations"][rows] = OUTSIDE_EVALUATIONS
        for name, values in found.items():
            columns.setdefault(name, values.new_zeros(len(x)))[rows[outside]] = values[outside]


def _by_nets(
    columns: dict[str, Tensor],
    prepared: PreparedModel,
    x: Tensor,
    usual: Tensor,
    request: SamplingRequest,
    progress: Progress,
    task: TaskID,
) -> None:
    """Estimate the usual rows by nets."""
    for rows in usual.nonzero()[:, 0].split(NET_ROWS_PER_CHUNK):
        part = by_nets(
            request.model,
            x[rows],
            variance=prepared.net_variance,
            tol=request.tol,
            seed=request.seed,
        )
        for name, values in part.items():
            columns.setdefault(name, values.new_zeros(len(x)))[rows] = values
        progress.advance(task, int(part["converged"].sum()))


def _confirm(columns: dict[str, Tensor], rows: Tensor, again: dict[str, Tensor]) -> None:
    """Merge a second estimate of some rows; they stay converged where both agree."""
    first = {name: column[rows] for name, column in columns.items()}
    gap = again["log_density"] - first["log_density"]
    most = SAME * torch.hypot(first["std_error"], again["std_error"])
    agree = gap.abs() <= most.clamp_min(ROUNDING)
    share = torch.sigmoid(gap)  # of the second estimate in the sum of both
    mean = {
        "log_density": torch.logaddexp(first["log_density"], again["log_density"]) - math.log(2),
        "std_error": torch.hypot((1 - share) * first["std_error"], share * again["std_error"]),
        "ess": first["ess"] + again["ess"],
        "pareto_k": torch.fmax(first["pareto_k"], again["pareto_k"]),
        "converged": first["converged"] & again["converged"],
        "n_evaluations": first["n_evaluations"] + again["n_evaluations"],
    }
    # A proposal that misses a part of p(x) gives the lower estimate.
    for name, column in columns.items():
        better = torch.where(gap > 0, again[name], first[name])
        column[rows] = torch.where(agree, mean[name], better)
    columns["converged"][rows] &= agree
    columns["n_evaluations"][rows] = mean["n_evaluations"]


def _sample(
    request: SamplingRequest, x: Tensor, unusual: bool, progress: Progress, task: TaskID
) -> dict[str, Tensor]:
    """Estimate rows by adaptive importance sampling, chunk by chunk."""
    parts = []
    for chunk in x.split(rows_per_chunk(request.model.latent_dim, request.max_evaluations)):
        parts.append(sample_rows(request, chunk, unusual=unusual)[0])
        progress.advance(task, len(chunk))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def rows_per_chunk(latent_dim: int, max_evaluations: int) -> int:
    """Return how many rows are sampled together.

    Draws are kept for refits, the weights of all draws for the estimate.

    Examples
    --------
    >>> rows_per_chunk(2, 20_000), rows_per_chunk(20, 20_000), rows_per_chunk(2, 1_000_000)
    (104, 104, 4)
    """
    numbers = max(MAX_FITTED_DRAWS * latent_dim, WEIGHT_COPIES * max_evaluations)
    return max(4, min(512, NUMBERS_PER_CHUNK // numbers))


def settled_proposal(
    prepared: PreparedModel, x: Tensor, *, tol: float = 0.05, seed: int = 0
) -> StudentMixture:
    """Return the proposal of adaptive importance sampling, one mixture per row of x."""
    x, bank = x.double(), prepared.bank(seed)
    request = SamplingRequest(
        prepared.model, bank, tol, DEFAULT_EVALUATIONS, seed, prepared.refines
    )
    of_parts = ~prepared.model.knows_pattern(x)
    unusual = unusual_rows(prepared.model, x, bank) & ~of_parts
    order, mixtures = [], []
    for rows in (unusual, ~unusual & ~of_parts, of_parts):
        if not rows.any():
            continue
        learns = rows is of_parts and prepared.scored_often
        parts = prepared.part_encoder() if learns else None
        one = replace(request, parts=parts, refines=request.refines and rows is not of_parts)
        order.append(rows.nonzero()[:, 0])
        mixtures.append(sample_rows(one, x[rows], unusual=rows is unusual)[1])
    return StudentMixture.joined(mixtures)[torch.cat(order).argsort()]
