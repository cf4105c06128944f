"""Mixtures of multivariate Student t distributions as proposals, one mixture per row."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass
class StudentMixture:
    """A mixture of t components for each row, in float64.

    Attributes
    ----------
    weights : Tensor
        Weights, `(rows, components)`, which sum to 1 over components.
    means : Tensor
        Locations, `(rows, components, dim)`.
    factors : Tensor
        Lower Cholesky factors of the scale matrices, `(rows, components, dim, dim)`.
    df : float
        Degrees of freedom of all components.
    """

    weights: Tensor
    means: Tensor
    factors: Tensor
    df: float

    def __getitem__(self, rows: Tensor) -> "StudentMixture":
        """Return the mixtures of some of the rows."""
        return StudentMixture(self.weights[rows], self.means[rows], self.factors[rows], self.df)

    @classmethod
    def joined(cls, mixtures: list["StudentMixture"]) -> "StudentMixture":
        """Return the mixtures of all rows, one after the other.

        Those with fewer components get copies of their last one, of weight zero.
        """
        most = max(mixture.weights.shape[1] for mixture in mixtures)
        mixtures = [mixture._filled_up(most) for mixture in mixtures]
        weights, means, factors = (
            torch.cat([getattr(mixture, name) for mixture in mixtures])
            for name in ("weights", "means", "factors")
        )
        return cls(weights, means, factors, mixtures[0].df)

    def _filled_up(self, components: int) -> "StudentMixture":
        spare = components - self.weights.shape[1]
        if not spare:
            return self
        return StudentMixture(
            torch.cat([self.weights, torch.zeros_like(self.weights[:, :1].expand(-1, spare))], 1),
            torch.cat([self.means, self.means[:, -1:].expand(-1, spare, -1)], 1),
            torch.cat([self.factors, self.factors[:, -1:].expand(-1, spare, -1, -1)], 1),
            self.df,
        )

    def replaced(self, where: Tensor, others: "StudentMixture") -> "StudentMixture":
        """Return these mixtures with `others` in the rows marked by the mask `where`."""
        return StudentMixture(
            self.weights.index_put((where,), others.weights),
            self.means.index_put((where,), others.means),
            self.factors.index_put((where,), others.factors),
            self.df,
        )

    def sample(self, n_samples: int, generators: list[np.random.Generator]) -> Tensor:
        """Draw `(rows, n_samples, dim)` points, those of each row from its own generator.

        Components are chosen in proportion to their weights (systematic sampling), and the draws
        are sorted by component.
        """
        rows, components, dim = self.means.shape
        normal = np.empty((rows, n_samples, dim))
        radius = np.empty((rows, n_samples, 1))
        start = np.empty((rows, 1))
        for row, rng in enumerate(generators):
            normal[row] = rng.standard_normal((n_samples, dim))
            radius[row] = rng.chisquare(self.df, size=(n_samples, 1))
            start[row] = rng.random()
        device = self.means.device
        standard = torch.from_numpy(normal / np.sqrt(radius / self.df)).to(device)
        places = (torch.from_numpy(start) + torch.arange(n_samples)) / n_samples
        chosen = torch.searchsorted(self.weights.cumsum(1), places.to(device))
        chosen = chosen.clamp_max(components - 1)[..., None]
        draws = torch.zeros_like(standard)
        for k in range(components):
            candidate = self.means[:, k, None] + standard @ self.factors[:, k].mT
            draws = torch.where(chosen == k, candidate, draws)
        return draws

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density of `(rows, n, dim)` points, `(rows, n)`."""
        return torch.logsumexp(self._component_log_probs(z)[0], dim=-1)

    def refit(self, z: Tensor, log_weights: Tensor, *, steps: int = 2) -> "StudentMixture":
        """Fit the mixtures to weighted draws by a few steps of EM.

        The current mixture acts as a prior: with a small effective sample size it hardly changes,
        so that no component collapses onto a single draw of large weight.

        Parameters
        ----------
        z : Tensor
            Draws, `(rows, n, dim)`.
        log_weights : Tensor
            Their log importance weights, `(rows, n)`.
        steps : int, default=2
            Number of EM steps.

        Returns
        -------
        StudentMixture
            The new mixtures.
        """
        dim = z.shape[-1]
        normalised = torch.softmax(log_weights, dim=1)
        effective = 1 / normalised.square().sum(1)[:, None, None]
        counts = effective[..., 0] * normalised  # sum to the effective sample size
        new, strength = self, dim + 2.0
        scales = self.factors @ self.factors.mT
        for _ in range(steps):
            log_parts, distance = new._component_log_probs(z)
            share = torch.softmax(log_parts, dim=-1) * counts[..., None]  # (rows, n, components)
            pull = share * (self.df + dim) / (self.df + distance)
            total, pulled = share.sum(1), pull.sum(1)
            means = (pull.mT @ z + self.means) / (pulled[..., None] + 1)
            matrices = strength * scales
            for k in range(means.shape[1]):
                centred = z - means[:, k, None]
                matrices[:, k] += (centred * pull[..., k, None]).mT @ centred
            matrices = matrices / (total + strength)[..., None, None]
            weights = total + self.weights * strength
            factors, failed = torch.linalg.cholesky_ex(matrices)
            # Components whose new scale matrix is numerically singular stay as they are.
            stays = (failed > 0)[..., None]
            new = StudentMixture(
                weights / weights.sum(1, keepdim=True),
                torch.where(stays, new.means, means),
                torch.where(stays[..., None], new.factors, factors),
                self.df,
            )
        return new

    def _component_log_probs(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return log weight × density and squared distance of each component, `(rows, n, k)`."""
        dim = z.shape[-1]
        constant = (
            math.lgamma((self.df + dim) / 2)
            - math.lgamma(self.df / 2)
            - 0.5 * dim * math.log(self.df * math.pi)
        )
        # For many points, products with inverse factors are quicker than triangular systems.
        identity = torch.eye(dim, dtype=z.dtype, device=z.device)
        inverses = torch.linalg.solve_triangular(self.factors, identity, upper=False)
        centres = (inverses @ self.means[..., None]).mT  # (rows, components, 1, dim)
        distances = [  # one component at a time, for the memory
            (z @ inverses[:, k].mT - centres[:, k]).square_().sum(-1)
            for k in range(self.means.shape[1])
        ]
        distance = torch.stack(distances, dim=-1)
        log_det = self.factors.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        log_prob = constant - 0.5 * (self.df + dim) * torch.log1p(distance / self.df)
        return log_prob + (self.weights.log() - log_det)[:, None], distance
