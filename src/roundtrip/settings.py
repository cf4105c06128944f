"""The estimator's settings: those of the paper, and what is allowed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from roundtrip.data.scaling import SCALES
from roundtrip.density.proposals import LARGEST_DF, SMALLEST_DF
from roundtrip.model.noise import LARGEST_SIGMA, SMALLEST_SIGMA
from roundtrip.parameters import (
    check_choice,
    check_integer,
    check_number,
    check_numbers,
    check_widths,
)
from roundtrip.training.batches import SAMPLING

DEFAULT_SIGMA_GRID = tuple(float(f"{value:.2g}") for value in np.geomspace(0.005, 1.0, 24))

OBJECTIVES = ("likelihood", "adversarial", "hybrid")
NOISES = ("isotropic", "diagonal", "heteroscedastic", "mixture")
PRIORS = ("normal", "mixture")
NETWORKS = ("mlp", "residual", "conv")

_LIKELIHOOD: dict[str, Any] = {
    "noise": "mixture",
    "prior": "mixture",
    "network": "residual",
    "generator_hidden": (128,) * 3,
    "encoder_hidden": (128,) * 3,
    "training_draws": 2,
    "learning_rate": 8e-3,
    "batch_size": 512,
    "max_epochs": 60,
    "averaging": 0.998,
    "validation_rows": 1000,
    "validation_samples": 10,
}
_ADVERSARIAL: dict[str, Any] = {
    "noise": "isotropic",
    "prior": "normal",
    "network": "mlp",
    "training_draws": 1,
    "generator_hidden": (256,) * 5,
    "encoder_hidden": (128,) * 5,
    "learning_rate": 5e-4,
    "batch_size": 128,
    "max_epochs": 30,
    "averaging": 0.995,
    "validation_rows": 500,
    "validation_samples": 200,
}
_IMAGES: dict[str, Any] = {
    **_LIKELIHOOD,
    "noise": "isotropic",
    "sigma": 0.25,
    "training_draws": 1,
    "generator_hidden": (256,) * 3,
    "encoder_hidden": (256,) * 3,
    "learning_rate": 4e-3,
    "validation_rows": 500,
    "validation_samples": 5,
}
IMAGE_LATENT_DIM = 16
"""More let a class imitate the images of others, which blurs p(y | x)."""

FULL_RATE_PIXELS = 784
"""Numbers an image up to which the learning rate of images is as it stands. A step of the encoder's
weights moves a code in proportion to the pixels, which are not centred, and the more of them there
are, the more exactly they fix the code: beyond, the rate falls by the square of their number
(measured up to 3,072). Convolutions see a few pixels at a time and keep their rate."""

AUTOMATIC: dict[str, dict[str, Any]] = {
    "likelihood": _LIKELIHOOD,
    "adversarial": _ADVERSARIAL,
    "images": _IMAGES,
    "hybrid": _LIKELIHOOD,
}
"""What "auto" stands for, by objective; "images" for those, if the objective is not adversarial."""

PAPER: dict[str, Any] = {
    "objective": "adversarial",
    "noise": "isotropic",
    "prior": "normal",
    "network": "mlp",
    "dequantize": False,
    "generator_hidden": (512,) * 10,
    "encoder_hidden": (256,) * 10,
    "discriminator_x_hidden": (256,) * 4,
    "discriminator_z_hidden": (128,) * 2,
    "alpha": 10.0,
    "beta": 10.0,
    "learning_rate": 2e-4,
    "batch_size": 64,
    "max_epochs": 200,
    "min_steps_per_epoch": 1,
    "patience": 10,
    "sampling": "replacement",
    "pool_size": 50,
    "averaging": 0.0,
    "sigma": "auto",
    "sigma_grid": (0.01, 0.05, 0.1, 0.2, 0.4, 0.5),
    "sigma_epochs": 20,
    "scale": "minmax",
    "validation_fraction": 0.1,
    "validation_rows": 200,
    "validation_samples": 1000,
    "n_samples": 40_000,
    "proposal_scale": 0.5,
    "proposal_df": 1.0,
}


PAPER_IMAGES: dict[str, Any] = {
    **PAPER,
    "network": "conv",
    "generator_hidden": (1024,),
    "encoder_hidden": (1024,),
    "discriminator_x_hidden": (1024,),
    "discriminator_z_hidden": (128,) * 2,
    "sigma": 0.1,
    "proposal_scale": 0.01,
}
"""Table S3; sigma and the proposal's width are those of the authors' code for images."""


def resolved(settings: Mapping[str, Any], *, pixels: int = 0) -> dict[str, Any]:
    """The settings with every "auto" that depends on the objective replaced by its value.

    `pixels` are the numbers an image; 0: the rows are of a table.

    >>> from roundtrip import Roundtrip
    >>> resolved(Roundtrip(batch_size=64).get_params())["noise"]
    'mixture'
    """
    check_choice("objective", settings["objective"], OBJECTIVES)
    likelihood_of_images = pixels > 0 and settings["objective"] != "adversarial"
    automatic = AUTOMATIC["images" if likelihood_of_images else settings["objective"]]
    result = {
        name: automatic[name] if name in automatic and _is_auto(value) else value
        for name, value in settings.items()
    }
    if pixels and _is_auto(result["latent_dim"]):
        result["latent_dim"] = IMAGE_LATENT_DIM
    if likelihood_of_images and _is_auto(settings["learning_rate"]) and result["network"] != "conv":
        result["learning_rate"] *= min(1.0, FULL_RATE_PIXELS / pixels) ** 2
    if not _is_auto(settings["noise"]):
        result["sigma"] = settings["sigma"]  # noise that was asked for learns its width
    return result


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise a `ValueError` that names the first setting with a value that is not allowed.

    Takes `resolved` settings.
    """
    check_choice("noise", settings["noise"], NOISES)
    check_choice("prior", settings["prior"], PRIORS)
    check_choice("network", settings["network"], NETWORKS)
    check_choice("dequantize", settings["dequantize"], ("auto", True, False))
    check_choice("warm_start", settings["warm_start"], (True, False))
    if settings["objective"] == "adversarial" and settings["noise"] != "isotropic":
        raise ValueError(
            f"objective='adversarial' learns no noise of its own, so that noise must be "
            f"'isotropic', got {settings['noise']!r}; use objective='hybrid' or 'likelihood'"
        )
    if settings["objective"] == "adversarial" and settings["prior"] != "normal":
        raise ValueError(
            "objective='adversarial' makes codes of N(0, I), so that prior must be 'normal', got "
            f"{settings['prior']!r}"
        )
    if settings["network"] == "conv" and settings["noise"] not in ("isotropic", "diagonal"):
        raise ValueError(
            f"network='conv' gives one number a pixel, so that noise must be 'isotropic' or "
            f"'diagonal', got {settings['noise']!r}"
        )
    if settings["network"] == "residual":
        for name in ("generator_hidden", "encoder_hidden"):
            check_widths(name, settings[name])
            if len(set(settings[name])) != 1:
                raise ValueError(
                    f"network='residual' has blocks of one width: {name} must repeat one number, "
                    f"got {settings[name]!r}"
                )
    if settings["latent_dim"] != "auto":
        check_integer("latent_dim", settings["latent_dim"], minimum=1)
    for name in (
        "generator_hidden",
        "encoder_hidden",
        "discriminator_x_hidden",
        "discriminator_z_hidden",
    ):
        check_widths(name, settings[name])
    for name in ("alpha", "beta", "learning_rate", "tol", "proposal_scale"):
        check_number(name, settings[name], above=0)
    check_number("proposal_df", settings["proposal_df"], above=SMALLEST_DF, below=LARGEST_DF)
    check_integer("batch_size", settings["batch_size"], minimum=2)
    for name in (
        "max_epochs",
        "min_steps_per_epoch",
        "patience",
        "validation_rows",
        "validation_samples",
        "n_samples",
        "noise_components",
        "training_draws",
    ):
        check_integer(name, settings[name], minimum=1)
    if settings["averaging"] != 0:
        check_number("averaging", settings["averaging"], above=0, below=1)
    check_integer("noise_boxes", settings["noise_boxes"], minimum=0)
    check_integer("pool_size", settings["pool_size"], minimum=0)
    check_number("validation_fraction", settings["validation_fraction"], above=0, below=1)
    sigma_limits = {"above": SMALLEST_SIGMA, "below": LARGEST_SIGMA}
    if settings["sigma"] != "auto":
        if settings["noise"] in ("heteroscedastic", "mixture"):
            raise ValueError(
                f"noise={settings['noise']!r} learns its widths: sigma is for 'isotropic' and "
                "'diagonal'"
            )
        check_number("sigma", settings["sigma"], **sigma_limits)
    check_numbers("sigma_grid", settings["sigma_grid"], **sigma_limits)
    if settings["sigma_epochs"] is not None:
        check_integer("sigma_epochs", settings["sigma_epochs"], minimum=1)
    check_choice("sampling", settings["sampling"], SAMPLING)
    check_choice("scale", settings["scale"], SCALES)
