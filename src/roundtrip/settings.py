"""The estimator's settings: those of the paper, and what is allowed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from roundtrip.density.proposals import LARGEST_DF, SMALLEST_DF
from roundtrip.noise import LARGEST_SIGMA, SMALLEST_SIGMA
from roundtrip.parameters import (
    check_choice,
    check_integer,
    check_number,
    check_numbers,
    check_widths,
)
from roundtrip.preprocessing import SCALES
from roundtrip.training.batches import SAMPLING

DEFAULT_SIGMA_GRID = tuple(float(f"{value:.2g}") for value in np.geomspace(0.005, 1.0, 24))

PAPER: dict[str, Any] = {
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


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise a `ValueError` that names the first setting with a value that is not allowed."""
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
    ):
        check_integer(name, settings[name], minimum=1)
    if settings["averaging"] != 0:
        check_number("averaging", settings["averaging"], above=0, below=1)
    check_integer("pool_size", settings["pool_size"], minimum=0)
    check_number("validation_fraction", settings["validation_fraction"], above=0, below=1)
    sigma_limits = {"above": SMALLEST_SIGMA, "below": LARGEST_SIGMA}
    if settings["sigma"] != "auto":
        check_number("sigma", settings["sigma"], **sigma_limits)
    check_numbers("sigma_grid", settings["sigma_grid"], **sigma_limits)
    if settings["sigma_epochs"] is not None:
        check_integer("sigma_epochs", settings["sigma_epochs"], minimum=1)
    check_choice("sampling", settings["sampling"], SAMPLING)
    check_choice("scale", settings["scale"], SCALES)
