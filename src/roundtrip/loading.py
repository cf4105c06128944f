"""`load`: from a model file to a fitted estimator."""

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roundtrip.data.context import Context
from roundtrip.data.images import ImageLayout
from roundtrip.data.scaling import Scaling
from roundtrip.estimator import Roundtrip
from roundtrip.io.devices import resolve_device
from roundtrip.io.model_file import ModelFileError, read_model_file
from roundtrip.model.prior import MixturePrior
from roundtrip.settings import resolved
from roundtrip.training.run import build_model

DETECTOR = "detector"
"""Entry of a file's content that tells that it holds a detector, not only a density."""


def load(path: str | os.PathLike[str], *, device: str | torch.device = "auto") -> Roundtrip:
    """Read an estimator that `Roundtrip.save` wrote. No code from the file is executed.

    It computes on `device`; "auto" is a CUDA GPU if there is one.

    Raises `ModelFileError` if the file is damaged or is no model file, `OSError` if it can't be
    read.

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
    content, tensors = read_model_file(path)
    if DETECTOR in content:
        raise ModelFileError(
            f"{path} holds an outlier detector: use `roundtrip detect`, or RoundtripDetector.load"
        )
    try:
        return restored(content, tensors, target)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ModelFileError(
            f"{path} does not fit this release of roundtrip, perhaps it is of a newer one: {error}"
        ) from error


def holds_detector(path: str | os.PathLike[str]) -> bool:
    """Whether a model file is one of `RoundtripDetector.save`, not of `Roundtrip.save`."""
    return DETECTOR in read_model_file(path)[0]


def restored(
    content: dict[str, Any], tensors: dict[str, Tensor], device: torch.device
) -> Roundtrip:
    """The estimator of `Roundtrip.file_parts`, on a device."""
    est = Roundtrip(**restored_parameters(content["parameters"]))
    est.latent_dim_ = content["latent_dim"]
    est.latent_dims_tried_ = dict(content["latent_dims_tried"])
    est.scaling_ = Scaling(
        tensors.pop("scaling.shift").numpy(), tensors.pop("scaling.scale").numpy()
    )
    est.scoring_seed_ = content["scoring_seed"]
    est.n_iter_ = content["n_iter"]
    est.best_epoch_ = content["best_epoch"]
    est.history_ = content["history"]
    est.n_features_in_ = len(est.scaling_.shift)
    est.columns_ = content["columns"]
    est.context_ = None if content["context"] is None else Context.restored(content["context"])
    if est.columns_ is not None and all(isinstance(name, str) for name in est.columns_):
        est.feature_names_in_ = np.array(est.columns_, dtype=object)
    est.stopped_by_ = content["stopped_by"]
    est.prior_gain_ = content["prior_gain"]
    est.resolution_ = tensors.pop("resolution").numpy()
    images = content["image_layout"]
    est.image_layout_ = None if images is None else ImageLayout(**images)
    model = build_model(
        resolved(est.get_params(), pixels=0 if images is None else est.n_features_in_),
        features=est.n_features_in_,
        latent_dim=est.latent_dim_,
        context_dim=0 if est.context_ is None else est.context_.width,
        image_shape=None if est.image_layout_ is None else est.image_layout_.shape,
        generator=torch.Generator(),
    )
    if content["prior_components"]:
        model.prior = MixturePrior.empty(content["prior_components"], est.latent_dim_)
    model.load_state_dict({name.removeprefix("model."): t for name, t in tensors.items()})
    est.model_ = model.eval().to(device)
    return est


def restored_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator as they were before JSON made lists of tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parameters.items()
    }
