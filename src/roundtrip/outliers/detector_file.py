"""Files of detectors: the model file of the density, and what the detector adds to it."""

import os
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from roundtrip.io.devices import resolve_device
from roundtrip.io.model_file import ModelFileError, plain, read_model_file, write_model_file
from roundtrip.loading import DETECTOR, restored, restored_parameters
from roundtrip.outliers.blurred import BlurredDensity
from roundtrip.outliers.columns import GaussianColumns
from roundtrip.outliers.detector import RoundtripDetector

ARRAYS = ("held_out_scores_", "model_scores_")
MAPS = ("values", "scores", "slopes")
CENTRES = "centres"


def write_detector(detector: RoundtripDetector, path: str | os.PathLike[str]) -> None:
    """Write a fitted detector."""
    content, tensors = detector.estimator_.file_parts()
    parameters = detector.get_params(deep=False) | {"estimator": None}
    names = getattr(detector, "feature_names_in_", None)
    content[DETECTOR] = {
        "parameters": {name: plain(value) for name, value in parameters.items()},
        "offset": detector.offset_,
        "n_trimmed": detector.n_trimmed_,
        "scored_with_sigma": None if detector.blurred_ is None else detector.blurred_.sigma,
        "given_estimator": None
        if detector.estimator is None
        else {name: plain(value) for name, value in detector.estimator.get_params().items()},
        "feature_names": None if names is None else list(names),
    }
    arrays: dict[str, np.ndarray | None] = {name: getattr(detector, name) for name in ARRAYS}
    if detector.gaussian_columns_ is not None:
        arrays |= {name: getattr(detector.gaussian_columns_, name) for name in MAPS}
    if detector.blurred_ is not None:
        # Made anew from the generator they would differ a little on another processor.
        arrays[CENTRES] = detector.blurred_.centres.cpu().numpy()
    for name, array in arrays.items():
        if array is not None:
            tensors[f"{DETECTOR}.{name}"] = torch.from_numpy(array)
    write_model_file(path, content, tensors)


def read_detector(
    path: str | os.PathLike[str], device: str | torch.device, verbose: int
) -> RoundtripDetector:
    """Read a detector, or make one of the density that the file holds."""
    target = resolve_device(device)
    content, tensors = read_model_file(path)
    added = {
        name.removeprefix(f"{DETECTOR}."): tensors.pop(name).numpy()
        for name in list(tensors)
        if name.startswith(f"{DETECTOR}.")
    }
    try:
        density = restored(content, tensors, target).set_params(verbose=verbose)
        if DETECTOR in content:
            detector = _restored_detector(content[DETECTOR], added, density)
            return detector.set_params(verbose=verbose)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ModelFileError(
            f"{path} does not fit this release of roundtrip, perhaps it is of a newer one: {error}"
        ) from error
    return RoundtripDetector.from_density(density).set_params(verbose=verbose)


def _restored_detector(
    content: dict[str, Any], arrays: dict[str, np.ndarray], density: Any
) -> RoundtripDetector:
    detector = RoundtripDetector(**content["parameters"])
    if content["given_estimator"] is not None:
        detector.estimator = clone(density).set_params(
            **restored_parameters(content["given_estimator"])
        )
    detector.estimator_ = density
    sigma = content["scored_with_sigma"]
    detector.blurred_ = None
    if sigma is not None:
        centres = torch.from_numpy(arrays[CENTRES]).to(density.model_.device)
        detector.blurred_ = BlurredDensity(centres, sigma, density.scaling_)
    detector.n_features_in_ = density.n_features_in_
    if content["feature_names"] is not None:
        detector.feature_names_in_ = np.array(content["feature_names"], dtype=object)
    detector.offset_ = content["offset"]
    detector.n_trimmed_ = content["n_trimmed"]
    for name in ARRAYS:
        setattr(detector, name, arrays.get(name))
    detector.gaussian_columns_ = (
        GaussianColumns(*(arrays[name] for name in MAPS)) if "values" in arrays else None
    )
    return detector
