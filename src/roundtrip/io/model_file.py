"""Model files: safetensors files with JSON content and a checksum in the header."""

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from roundtrip.exceptions import ModelFileError
from roundtrip.io.atomic import atomic_write
from roundtrip.parameters import Component, is_sequence

FORMAT = "roundtrip-model"
FORMAT_VERSION = "4"


def write_model_file(
    path: str | os.PathLike[str], content: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    """Write a model file atomically; an existing file is replaced.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    content : dict
        JSON content.
    tensors : dict
        Tensors by name.
    """
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    text = json.dumps(content)
    metadata = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "content": text,
        "sha256": _checksum(text, tensors),
    }
    with atomic_write(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:
            full = "os error 28" in str(error)
            raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from error


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a file that `write_model_file` wrote; no code from the file is executed.

    Parameters
    ----------
    path : str or os.PathLike
        The file.

    Returns
    -------
    content : dict
        JSON content.
    tensors : dict
        Tensors by name, on the CPU.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged or has another format version.
    OSError
        If the file can't be opened.
    """
    metadata, tensors = _read(Path(path))
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a Roundtrip model file")
    if metadata.get("version") != FORMAT_VERSION:
        version = metadata.get("version")
        advice = {"1": "fit it again, or use roundtrip 0.1", "2": "fit it again"}.get(
            str(version), "a newer one may"
        )
        raise ModelFileError(
            f"{path} has format version {version!r}, this release reads version "
            f"{FORMAT_VERSION}: {advice}"
        )
    text = metadata.get("content", "")
    if metadata.get("sha256") != _checksum(text, tensors):
        raise ModelFileError(f"{path} is damaged: its checksum does not match its content")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} has no content that can be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} has no content: it names no parts of a model")
    return content, tensors


def check_finite(part: str, tensors: Mapping[str, Tensor]) -> None:
    """Raise `ModelFileError` for numbers that no fit gives.

    Parameters
    ----------
    part : str
        Name of the part of the file, for the message.
    tensors : mapping
        Its tensors by name.

    Examples
    --------
    >>> check_finite("model", {"weight": torch.tensor([torch.nan])})
    Traceback (most recent call last):
        ...
    roundtrip.exceptions.ModelFileError: weight of the model is not finite
    """
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise ModelFileError(f"{name} of the {part} is not finite")


def plain(value: Any) -> Any:
    """Return a parameter as JSON content; components and mappings become dicts, sequences lists."""
    if isinstance(value, Component):
        settings = {name: plain(setting) for name, setting in value.get_params().items()}
        content = {"component": type(value).__name__, "settings": settings}
        # A user's class may have the name of one of ours.
        return content if is_ours(type(value)) else {**content, "own": True}
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key), plain(each)] for key, each in value.items()]}
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, np.random.RandomState):
        return None  # fit has advanced its state, so a saved copy would not repeat the fit
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if is_sequence(value):
        return [plain(item) for item in value]
    return value


def is_ours(kind: type) -> bool:
    """Whether a class is one of this package, not the user's."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


def restored(value: Any, components: Mapping[str, type[Component]]) -> Any:
    """Return the parameter whose `plain` content this is; sequences become tuples.

    Parameters
    ----------
    value : object
        JSON content from `plain`.
    components : mapping
        Component classes that a file may name, by name.

    Returns
    -------
    object
        The parameter.

    Raises
    ------
    ModelFileError
        If the content names a component that is not among `components`.
    """
    if isinstance(value, dict) and "mapping" in value:
        return {
            restored(key, components): restored(each, components) for key, each in value["mapping"]
        }
    if isinstance(value, dict):
        name, own = value["component"], value.get("own", False)
        kind = components.get(name)
        if kind is None or is_ours(kind) == own:
            raise ModelFileError(
                f"it uses the component {name}: give its class, load(path, components=[{name}])"
            )
        settings = {key: restored(each, components) for key, each in value["settings"].items()}
        try:
            return kind(**settings)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"the component {name} refuses its settings: {error}") from error
    return tuple(restored(item, components) for item in value) if isinstance(value, list) else value


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    with path.open("rb"):  # raises OSError for a missing or unreadable file and for a folder
        pass
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            # The tensors are views of the file, which may change later, and so are cloned.
            tensors = {name: file.get_tensor(name).clone() for name in names}
            return file.metadata() or {}, tensors
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"{path} is damaged or is not a Roundtrip model file") from error


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 checksum of the content and of all tensors."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
