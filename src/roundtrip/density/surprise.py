"""The surprise -log p(x) of a row, divided among its features and its code."""

from dataclasses import dataclass

import torch
from torch import Tensor

from roundtrip.density.adaptive import DEFAULT_EVALUATIONS, adaptive, settled_proposal
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.density.outside import with_outside_code
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.randomness import row_generators
from roundtrip.density.weights import log_joints
from roundtrip.io.progress import tracked
from roundtrip.model.core import RoundtripModel
from roundtrip.parameters import named_seed

DRAWS = 512
ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class Surprise:
    """-log p(x) = Σ_j E(-log p(x_j | z)) + KL(p(z | x) ‖ p(z)), with means over p(z | x).

    Attributes
    ----------
    residual : Tensor
        The terms of the sum, `(rows, features)`: how far each feature is from the manifold.
    latent : Tensor
        The KL term, `(rows,)`: how rare the place on the manifold is.
    """

    residual: Tensor
    latent: Tensor

    @property
    def total(self) -> Tensor:
        """-log p(x), `(rows,)`."""
        return self.residual.sum(dim=1) + self.latent


@torch.no_grad()
def surprise_parts(model: RoundtripModel, x: Tensor, *, tol: float, seed: int) -> Surprise:
    """Divide the surprise of rows into its parts by importance sampling from p(z | x).

    Parameters
    ----------
    model : RoundtripModel
        Model without a context.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    tol : float
        Tolerance at which the proposal of a row is found.
    seed : int
        Seed of the draws.

    Returns
    -------
    Surprise
        The parts.

    Examples
    --------
    >>> import torch
    >>> model = RoundtripModel(torch.nn.Linear(1, 2), torch.nn.Linear(2, 1), 1, sigma=0.5)
    >>> surprise_parts(model, torch.zeros(3, 2), tol=0.1, seed=0).residual.shape
    torch.Size([3, 2])
    """
    prepared = PreparedModel(model)
    blocks = [_block_parts(prepared, block.double(), tol, seed) for block in x.split(ROWS_AT_ONCE)]
    return Surprise(
        torch.cat([block.residual for block in blocks]),
        torch.cat([block.latent for block in blocks]),
    )


def _block_parts(prepared: PreparedModel, x: Tensor, tol: float, seed: int) -> Surprise:
    model = prepared.model
    proposal = settled_proposal(prepared, x, tol=tol, seed=seed)
    z = proposal.sample(DRAWS, row_generators(x.cpu().numpy(), named_seed(seed, "explanation")))
    log_weights = log_joints(model, x, z) - proposal.log_prob(z)
    codes, log_shares = with_outside_code(model, x, z, log_weights)
    outputs = map_blocks(model.outputs_of, codes.flatten(0, 1), EVALUATIONS_PER_CALL)
    terms = tuple(term[:, None] for term in model.noise.row_terms(x))
    log_likelihood = model.noise.log_prob_of_terms(outputs.view(*codes.shape[:2], -1), terms)
    share = torch.softmax(log_shares, dim=1)
    residual = -(share[..., None] * log_likelihood).sum(dim=1)
    total = -torch.logsumexp(log_shares, dim=1)
    return Surprise(residual, total - residual.sum(dim=1))


def surprise_given_others(
    model: RoundtripModel, x: Tensor, typical: Tensor, *, tol: float, seed: int, verbose: bool
) -> Tensor:
    """Estimate -log p(x_j | all other features) of each feature j.

    It is the difference of the log densities without and with the feature. Because p(x | z) is a
    product over the features, leaving out a factor integrates out the feature.

    Parameters
    ----------
    model : RoundtripModel
        Model without a context.
    x : Tensor
        Rows in scaled units, `(rows, features)`.
    typical : Tensor
        Typical values, `(features,)`, which replace the feature in the input of the encoder.
    tol : float
        Standard error of each log density, in nats.
    seed : int
        Seed of the draws.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    Tensor
        One value per feature, `(rows, features)`.
    """

    def log_density(of: RoundtripModel, rows: Tensor) -> Tensor:
        result = adaptive(
            PreparedModel(of), rows, tol=tol, max_evaluations=DEFAULT_EVALUATIONS, seed=seed
        )
        return torch.from_numpy(result.log_density).to(x.device)

    x = x.double()
    whole = log_density(model, x)
    columns = []
    for feature in tracked(range(x.shape[1]), "explaining", enabled=verbose):
        unseen = torch.zeros(x.shape[1], dtype=torch.bool, device=x.device)
        unseen[feature] = True
        rows = torch.where(unseen, typical, x)
        columns.append(log_density(model.without(unseen), rows) - whole)
    return torch.stack(columns, dim=1)
