"""Errors and warnings of this package."""

import sys
import warnings

PASSED_OVER = ("roundtrip", "torch")
"""Packages whose functions are between a user's call and a warning."""


class ModelFileError(ValueError):
    """A file is not a model file, is damaged, or has a version that this release can't read."""


class CheckpointError(ValueError):
    """A checkpoint is damaged, is not a checkpoint, or belongs to another fit."""


class DensityWarning(UserWarning):
    """Some density estimates are less precise than requested."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the user's call, however deep in this package it arises.

    Parameters
    ----------
    message : str
        The message.
    category : type of Warning, default=UserWarning
        Its class.
    """
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_OVER:
        if frame.f_back is None:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
