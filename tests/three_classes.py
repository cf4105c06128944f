"""Three Gaussian classes in the plane, whose densities are known, and settings for fits to them."""

import numpy as np

from roundtrip import MLP, Adversarial, Hybrid, Likelihood, Mixture, Residual, Validation

TINY = {
    "max_epochs": 2,
    "objective": Likelihood(min_steps_per_epoch=20),
    "network": Residual(16, 1),
    "noise": Mixture(boxes=4),
    "validation": Validation(rows=50),
    "tol": 0.3,
}
TINY_ADVERSARIAL = TINY | {
    "objective": Adversarial(min_steps_per_epoch=20),
    "network": MLP((16,), (16,)),
    "noise": "isotropic",
}
TINY_HYBRID = TINY | {"objective": Hybrid(min_steps_per_epoch=20)}
SMALL = {
    "max_epochs": 8,
    "objective": Likelihood(batch_size=256, min_steps_per_epoch=60),
    "network": Residual(48, 2),
    "noise": Mixture(boxes=8),
}
MEANS = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
SDS = np.array([1.0, 0.5, 0.7])
SHARES = np.array([0.5, 0.3, 0.2])


def three_gaussians(rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=rows, p=SHARES)
    return MEANS[y] + SDS[y, None] * rng.normal(size=(rows, 2)), y


def true_log_density(X):
    """log p(x | y), `(rows, 3)`."""
    squared = ((X[:, None] - MEANS) ** 2).sum(-1) / SDS**2
    return -0.5 * squared - np.log(2 * np.pi * SDS**2)
