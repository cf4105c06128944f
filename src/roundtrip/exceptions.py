"""Errors and warnings of this package."""


class ModelFileError(ValueError):
    """A file is not a model file, is damaged, or has a version that this release can't read."""


class CheckpointError(ValueError):
    """A checkpoint is damaged, is not a checkpoint, or belongs to another fit."""


class DensityWarning(UserWarning):
    """Some density estimates are less precise than requested."""
