"""Shorthands, what "auto" stands for, and the settings of the paper."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator

from roundtrip.density.proposals import Proposal
from roundtrip.model.networks import MLP, Conv, Network, Residual
from roundtrip.model.noise import Diagonal, Heteroscedastic, Isotropic, Mixture, Noise
from roundtrip.model.prior import MixturePrior, NormalPrior, Prior
from roundtrip.parameters import Component, as_component, check_choice, check_integer, is_auto
from roundtrip.training import (
    Adversarial,
    Hybrid,
    Likelihood,
    Objective,
    Validation,
)
from roundtrip.training.likelihood import SMALL_TABLE
from roundtrip.training.objective import FitOptions

OBJECTIVES: dict[str, Component] = {
    "likelihood": Likelihood(),
    "adversarial": Adversarial(),
    "hybrid": Hybrid(),
}
NOISES: dict[str, Component] = {
    "isotropic": Isotropic(),
    "diagonal": Diagonal(),
    "heteroscedastic": Heteroscedastic(),
    "mixture": Mixture(),
}
PRIORS: dict[str, Component] = {"normal": NormalPrior(), "mixture": MixturePrior()}
NETWORKS: dict[str, Component] = {
    "residual": Residual(),
    "mlp": MLP(),
    "conv": Conv(hidden=128),
}
IMAGE_NETWORKS: dict[str, Component] = {
    "residual": Residual(width=256),
    "mlp": MLP((256,) * 3, (256,) * 3),
    "conv": Conv(hidden=256),
}
ADVERSARIAL_NETWORKS: dict[str, Component] = {
    "mlp": MLP((256,) * 5, (128,) * 5),
    "residual": Residual(width=256, blocks=5),
    "conv": Conv(hidden=256, batch_norm=True),
}

COMPONENTS: tuple[type[Component], ...] = (
    *(Likelihood, Adversarial, Hybrid),
    *(Isotropic, Diagonal, Heteroscedastic, Mixture),
    *(NormalPrior, MixturePrior),
    *(Residual, MLP, Conv),
    *(Validation, Proposal),
)
"""Every component of this package; model files refer to them by class name."""

TABLE_WIDTHS = ((5_000, 32), (20_000, 64))
"""Widths of networks for tables of fewer rows than the first number (docs/design.md)."""

IMAGE_LATENT_DIM = 16
"""With more dimensions a class imitates the images of other classes, which blurs p(y | x)."""

IMAGE_SIGMA = 0.25
"""Not learnt, because with low noise a class imitates the images of other classes."""

PAPER: dict[str, Any] = {
    "objective": Adversarial(
        alpha=10.0,
        beta=10.0,
        discriminator_x=(256,) * 4,
        discriminator_z=(128,) * 2,
        pool_size=50,
        learning_rate=2e-4,
        batch_size=64,
        min_steps_per_epoch=1,
        averaging=0.0,
        sampling="replacement",
        sigma_grid=(0.01, 0.05, 0.1, 0.2, 0.4, 0.5),
        sigma_epochs=20,
    ),
    "noise": "isotropic",
    "prior": "normal",
    "network": MLP(generator_widths=(512,) * 10, encoder_widths=(256,) * 10),
    "scale": "minmax",
    "dequantize": False,
    "max_epochs": 200,
    "validation": Validation(fraction=0.1, rows=200, draws=1000, patience=10),
    "proposal": Proposal(scale=0.5, df=1.0, draws=40_000),
}
"""The paper's settings. Settings that the paper does not state are those of the authors' code; the
number of validation rows scored per epoch is chosen here, for speed."""

PAPER_IMAGES: dict[str, Any] = {
    **PAPER,
    "objective": PAPER["objective"].with_params(discriminator_x=(1024,)),
    "network": Conv(hidden=1024, batch_norm=True),
    "noise": Isotropic(sigma=0.1),
    "proposal": Proposal(scale=0.01, df=1.0, draws=40_000),
}
"""Table S3. Sigma and the scale of the proposal are those of the authors' code for images."""


def component(
    name: str, value: Any, params: Mapping[str, Any], *, pixels: int = 0, rows: float = math.inf
) -> Any:
    """Check the parameter `name` of an estimator and give the component it stands for.

    Parameters
    ----------
    name : {"objective", "noise", "network", "prior", "validation", "proposal"}
        The parameter.
    value : str or Component
        Its value: a component, the shorthand for one, or "auto".
    params : mapping
        Parameters of the estimator; what "auto" stands for depends on the objective.
    pixels : int, default=0
        Numbers per image; 0 for tables.
    rows : float, default=inf
        Number of rows; "auto" is a narrower network for small tables.

    Returns
    -------
    Component
        Checked.

    Examples
    --------
    >>> component("noise", "auto", {"objective": "likelihood"})
    Mixture()
    >>> component("noise", "auto", {"objective": "adversarial"})
    Isotropic()
    """
    if name == "objective":
        return as_component(name, value, Objective, OBJECTIVES)
    if name in ("validation", "proposal"):
        kind = Validation if name == "validation" else Proposal
        return as_component(name, value, kind, {"auto": kind()})
    objective = as_component("objective", params["objective"], Objective, OBJECTIVES)
    by_likelihood = objective.has_posterior
    if name == "noise":
        default: Component = Isotropic()
        if by_likelihood:
            default = Isotropic(sigma=IMAGE_SIGMA) if pixels else Mixture()
        return as_component(name, value, Noise, NOISES | {"auto": default})
    if name == "prior":
        default = MixturePrior() if by_likelihood else NormalPrior()
        return as_component(name, value, Prior, PRIORS | {"auto": default})
    assert name == "network"
    networks, default = ADVERSARIAL_NETWORKS, ADVERSARIAL_NETWORKS["mlp"]
    if by_likelihood:
        networks = IMAGE_NETWORKS if pixels else NETWORKS
        default = networks["residual"] if pixels else Residual(width=table_width(rows))
    return as_component(name, value, Network, networks | {"auto": default})


def table_width(rows: float) -> int:
    """Return the width of networks for a table: wide ones overfit small tables.

    Examples
    --------
    >>> [table_width(rows) for rows in (100, 10_000, 100_000)]
    [32, 64, 128]
    """
    return next((width for limit, width in TABLE_WIDTHS if rows < limit), Residual().width)


COMPONENT_PARAMETERS = ("objective", "noise", "network", "prior", "validation", "proposal")


def fit_options(
    params: Mapping[str, Any],
    *,
    pixels: int = 0,
    rows: float = math.inf,
    features: int = 0,
    has_max_time: bool = False,
) -> FitOptions:
    """Check the parameters of an estimator and replace shorthands and "auto".

    Parameters
    ----------
    params : mapping
        Parameters, as `Roundtrip.get_params` gives them.
    pixels : int, default=0
        Numbers per image; 0 for tables.
    rows : float, default=inf
        Number of rows.
    features : int, default=0
        Number of features of a table; 0 if it is not known yet.
    has_max_time : bool, default=False
        Whether the fit has a time limit, which replaces the default limit of epochs.

    Returns
    -------
    FitOptions
        What training depends on.

    Examples
    --------
    >>> from roundtrip import Roundtrip
    >>> fit_options(Roundtrip().get_params(), rows=300).objective.batch_size
    256
    """
    parts = {
        name: component(name, params[name], params, pixels=pixels, rows=rows)
        for name in COMPONENT_PARAMETERS
    }
    for part in parts.values():
        part.check()
    objective, network = parts["objective"], parts["network"]
    objective.check_with(parts["noise"], parts["prior"])
    by_likelihood = objective.has_posterior
    parts["objective"] = objective.resolved(
        pixels=pixels,
        rate_follows_pixels=pixels > 0 and not network.local,
        rows=rows,
        features=features,
    )
    validation_rows, draws = (500, 5) if pixels else (1000, 10)
    if not by_likelihood:
        validation_rows, draws = 500, 200
    validation = parts["validation"]
    parts["validation"] = validation.with_params(
        rows=validation_rows if is_auto(validation.rows) else validation.rows,
        draws=draws if is_auto(validation.draws) else validation.draws,
    )
    check_choice("dequantize", params["dequantize"], ("auto", True, False))
    latent_dim: int | Literal["auto"] = params["latent_dim"]
    if not is_auto(latent_dim):
        latent_dim = check_integer("latent_dim", latent_dim, minimum=1)
    elif pixels:
        latent_dim = IMAGE_LATENT_DIM
    max_epochs = params["max_epochs"]
    if not is_auto(max_epochs):
        check_integer("max_epochs", max_epochs, minimum=1)
    elif not pixels and rows < SMALL_TABLE and type(objective) is Likelihood:
        pass  # trials choose it
    elif has_max_time:
        max_epochs = math.inf
    else:
        max_epochs = 60 if by_likelihood else 30
    return FitOptions(
        latent_dim=latent_dim,
        max_epochs=max_epochs,
        dequantize=by_likelihood if is_auto(params["dequantize"]) else params["dequantize"],
        verbose=bool(params.get("verbose")),
        **parts,
    )


class HasComponents(BaseEstimator):
    """An estimator some of whose parameters are components."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator or of its components (``objective__alpha=5``).

        A component is replaced, never changed. A string or "auto" is first replaced by the
        component that it stands for.

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        self
        """
        within: dict[str, dict[str, Any]] = defaultdict(dict)
        for name in list(params):
            owner, separator, setting = name.partition("__")
            if separator and owner in COMPONENT_PARAMETERS:
                within[owner][setting] = params.pop(name)
        new = self.get_params(deep=False) | params
        replaced = {
            owner: component(owner, new[owner], new).with_params(**settings)
            for owner, settings in within.items()
        }
        return super().set_params(**(params | replaced))


class PaperPresets(BaseEstimator):
    """Class methods that give an estimator the settings of the paper."""

    @classmethod
    def paper(cls, latent_dim: int | Literal["auto"] = "auto", **overrides: Any) -> Self:
        """Make an estimator with the settings of the paper (`roundtrip.options.PAPER`).

        The paper scales tables to [0, 1] (Appendix D), but not its simulations: pass
        ``scale=None`` for these.

        Parameters
        ----------
        latent_dim : int or "auto", default="auto"
            Dimension of z.
        **overrides
            Parameters to replace, as `set_params` takes them.

        Examples
        --------
        >>> from roundtrip import Roundtrip
        >>> Roundtrip.paper(latent_dim=5, objective__alpha=5).objective.batch_size
        64
        """
        return cls(latent_dim=latent_dim, **PAPER).set_params(**overrides)

    @classmethod
    def paper_images(cls, latent_dim: int = 100, **overrides: Any) -> Self:
        """Make an estimator with the paper's settings for images (its Table S3).

        Fit it with ``context=labels`` for p(x | y), as in the paper's Fig. 3.

        Parameters
        ----------
        latent_dim : int, default=100
            Dimension of z.
        **overrides
            Parameters to replace, as `set_params` takes them.

        Examples
        --------
        >>> from roundtrip import Roundtrip
        >>> Roundtrip.paper_images().network
        Conv(batch_norm=True)
        """
        return cls(latent_dim=latent_dim, **PAPER_IMAGES).set_params(**overrides)
