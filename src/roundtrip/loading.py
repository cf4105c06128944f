"""`load`: reads the estimator, classifier, detector or imputer in a model file."""

import os
from collections.abc import Sequence
from typing import Any

import torch

from roundtrip.classifier import RoundtripClassifier
from roundtrip.estimator import Roundtrip
from roundtrip.exceptions import ModelFileError
from roundtrip.imputer import RoundtripImputer
from roundtrip.io.devices import resolve_device
from roundtrip.io.model_file import read_model_file
from roundtrip.io.saved import CLASS, FileParts, Restoring, SavedToFile
from roundtrip.options import COMPONENTS
from roundtrip.outliers.detector import RoundtripDetector
from roundtrip.parameters import Component, is_sequence

CLASSES: dict[str, type[SavedToFile]] = {
    kind.__name__: kind
    for kind in (Roundtrip, RoundtripClassifier, RoundtripDetector, RoundtripImputer)
}


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "auto",
    components: Sequence[type[Component]] = (),
) -> Any:
    """Read a file that `save` wrote; no code from the file is executed.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    device : str or torch.device, default="auto"
        Device of the networks; "auto" is a CUDA GPU if there is one, else the CPU.
    components : sequence of type, default=()
        Classes of your own components with which the model was fitted.

    Returns
    -------
    Roundtrip, RoundtripClassifier, RoundtripDetector or RoundtripImputer
        The fitted object that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, has a version that this release can't read, or
        names a component that is not among `components`.
    OSError
        If the file can't be opened.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from roundtrip import Roundtrip, load
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> est = Roundtrip(max_epochs=1, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     est.save(folder + "/model.rt")
    ...     again = load(folder + "/model.rt")
    >>> bool((again.score_samples(X) == est.score_samples(X)).all())
    True
    """
    target = resolve_device(device)
    for each in components if is_sequence(components) else [components]:
        known = isinstance(each, type) and issubclass(each, Component)
        if not (known and is_sequence(components)):
            raise TypeError(f"components must be a list of component classes, got {components!r}")
    content, tensors = read_model_file(path)
    how = Restoring(target, {each.__name__: each for each in (*COMPONENTS, *components)})
    try:
        kind = CLASSES[content[CLASS]]
        return kind._from_file_parts(FileParts(content, tensors), how)
    except ModelFileError as error:
        raise ModelFileError(f"can't load {path}: {error}") from error
    except Exception as error:  # content of another shape fails in any way
        raise ModelFileError(
            f"{path} does not fit this release of roundtrip; perhaps a newer one wrote it: {error}"
        ) from error
