"""The density estimators that figures and tables compare."""

from typing import Any

from roundtrip.baselines import BASELINES
from roundtrip.estimator import Roundtrip
from roundtrip.parameters import check_choice

DEFAULT = "Roundtrip"
PAPER = "Roundtrip (paper)"
METHODS = ("KDE", "Gaussian mixture", "MADE", "RealNVP", "MAF", "NSF", PAPER, DEFAULT)
FIGURE_METHODS = ("KDE", "MADE", "RealNVP", "MAF", "NSF", PAPER, DEFAULT)
"""The methods of the paper, NSF and our default."""

QUICK_VALIDATION = {"validation__rows": 20, "validation__draws": 100}
"""For the paper's preset in quick runs, where its own validation takes longer than training."""


def make_method(
    name: str, *, seed: int, latent_dim: int, scale: str | None, quick: bool = False
) -> Any:
    """Make an unfitted estimator.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    seed : int
        Its random state.
    latent_dim, scale : int, str or None
        Used by the paper's preset only.
    quick : bool, default=False
        Whether the paper's preset validates with fewer rows and draws.

    Examples
    --------
    >>> make_method("Roundtrip", seed=0, latent_dim=3, scale=None).latent_dim
    'auto'
    """
    check_choice("method", name, METHODS)
    if name == PAPER:
        reduced = QUICK_VALIDATION if quick else {}
        return Roundtrip.paper(latent_dim, scale=scale, random_state=seed, **reduced)
    if name == DEFAULT:
        return Roundtrip(random_state=seed)
    return BASELINES[name](random_state=seed)
