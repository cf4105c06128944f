"""The methods that are compared, each made ready for one fit."""

from typing import Any

from roundtrip.baselines import BASELINES
from roundtrip.estimator import Roundtrip
from roundtrip.parameters import check_choice

DEFAULT = "Roundtrip"
PAPER = "Roundtrip (paper)"
METHODS = ("KDE", "Gaussian mixture", "MADE", "RealNVP", "MAF", "NSF", PAPER, DEFAULT)
FIGURE_METHODS = ("KDE", "MADE", "RealNVP", "MAF", "NSF", PAPER, DEFAULT)
"""Those of the paper, NSF and our default."""


QUICK_VALIDATION = {"validation__rows": 20, "validation__draws": 100}
"""Of the paper's preset in quick runs, where its own would take longer than the training."""


def make_method(
    name: str, *, seed: int, latent_dim: int, scale: str | None, quick: bool = False
) -> Any:
    """An estimator that is not fitted yet; `latent_dim` and `scale` are for the paper's preset.

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
