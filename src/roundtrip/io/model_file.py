"""Model files: safetensors whose header carries JSON content and a checksum of everything."""

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
FORMAT_VERSION = "2"


def write_model_file(
    path: str | os.PathLike[str], content: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    """Write `content` (plain JSON) and `tensors`; an old file is replaced by a complete new one."""
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(content)
    metadata = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "content": text,
        "sha256": _checksum(text, tensors),
    }
    with atomic_write(path) as temporary:
        save_file(tensors, temporary, metadata=metadata)


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Content and tensors of a file that `write_model_file` wrote, on the CPU.

    Raises `ModelFileError` for a foreign, damaged or newer file and `OSError` for one that can't
    be read. Nothing in the file is executed.
    """
    metadata, tensors = _read(Path(path))
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a Roundtrip model file")
    if metadata.get("version") != FORMAT_VERSION:
        version = metadata.get("version")
        advice = "fit it again, or use roundtrip 0.1" if version == "1" else "a newer one may"
        raise ModelFileError(
            f"{path} has format version {version!r}, this release reads version "
            f"{FORMAT_VERSION}: {advice}"
        )
    text = metadata.get("content", "")
    if metadata.get("sha256") != _checksum(text, tensors):
        raise ModelFileError(f"{path} is damaged: its checksum does not match its content")
    return json.loads(text), tensors


def plain(value: Any) -> Any:
    """A parameter as JSON knows it: numbers, strings, None, lists and components."""
    if isinstance(value, Component):
        settings = {name: plain(setting) for name, setting in value.get_params().items()}
        return {"component": type(value).__name__, "settings": settings}
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, np.random.RandomState):
        return None  # a stream of random numbers is spent by the fit; it has no value to keep
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if is_sequence(value):
        return [plain(item) for item in value]
    return value


def restored(value: Any, components: Mapping[str, type[Component]]) -> Any:
    """What `plain` was made of; sequences come back as tuples.

    `components` are the classes that a file may name.
    """
    if isinstance(value, dict):
        name = value["component"]
        if name not in components:
            raise ModelFileError(
                f"it was made with the component {name}: give its class, "
                f"load(path, components=[{name}])"
            )
        settings = {key: restored(each, components) for key, each in value["settings"].items()}
        return components[name](**settings)
    return tuple(restored(item, components) for item in value) if isinstance(value, list) else value


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    with path.open("rb"):  # a missing or unreadable file and a folder raise their own OSError
        pass
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            # Clones: the tensors as read are views of the file, which may change later.
            tensors = {name: file.get_tensor(name).clone() for name in names}
            return file.metadata() or {}, tensors
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"{path} is damaged or is not a Roundtrip model file") from error


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """Of everything that decides what the estimator computes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
