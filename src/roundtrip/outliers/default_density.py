"""The density that detection uses unless it is given one."""

from roundtrip.estimator import Roundtrip
from roundtrip.model.networks import Residual
from roundtrip.model.noise import Isotropic

MOST_LATENT = 10
MOST_ROWS = 20_000
"""That the default density is fitted to: more would not change what wide noise shows of it."""


def default_density(features: int) -> Roundtrip:
    """A density that is small and quick to fit, as wide noise hides details anyway.

    >>> default_density(3).noise
    Isotropic(sigma=0.3)
    """
    return Roundtrip(
        latent_dim=min(features, MOST_LATENT),
        noise=Isotropic(sigma=0.3),
        network=Residual(width=64, blocks=2),
        prior="normal",
        scale=None,
        dequantize=False,
        max_epochs=5,
        tol=0.1,
    )
