"""Checkpoint files: training goes on where it was when its process was killed."""

import copy
import hashlib
import io
import os
import pickle
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from roundtrip.exceptions import CheckpointError
from roundtrip.io.atomic import atomic_write

MAGIC = b"roundtrip-checkpoint 1\n"
LARGEST_SHARE = 0.05
"""Of the time may be spent on writing; checkpoints of large networks are written less often."""


class Checkpoint:
    """The state of a fit in a file, by the name of each training that the fit consists of.

    Opening reads the file if there is one. Files are replaced as a whole and carry a checksum; no
    code in them is executed.

    Parameters
    ----------
    path : of the file.
    fingerprint : of data and settings, see `fingerprint`; a file with another one is refused.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = Path(path)
        self._content: dict[str, Any] = {
            "fingerprint": fingerprint,
            "seed": random.SystemRandom().randrange(2**31),
            "states": {},
        }
        self._last_end = -float("inf")
        self._last_duration = 0.0
        content = read_checkpoint(path)
        if content is not None:
            if content["fingerprint"] != fingerprint:
                raise CheckpointError(
                    f"{path} is the checkpoint of a fit with other data or settings; delete it to "
                    "start anew, or give another path"
                )
            self._content = content

    @property
    def seed(self) -> int:
        """A seed for a fit without a `random_state`: the same one when the fit goes on."""
        return int(self._content["seed"])

    def state(self, name: str) -> dict[str, Any] | None:
        """What was kept last of the training `name`."""
        return self._content["states"].get(name)

    def offer(self, name: str, state: Callable[[], dict[str, Any]]) -> None:
        """Keep `state()`, but not so often that writing would slow down training."""
        waited = time.perf_counter() - self._last_end
        if waited * LARGEST_SHARE >= self._last_duration:
            self.keep(name, state())

    def keep(self, name: str, state: dict[str, Any]) -> None:
        """Write `state`, which consists of numbers, strings, tensors, lists and dicts."""
        start = time.perf_counter()
        self._content["states"][name] = copy.deepcopy(state)  # training goes on with these tensors
        buffer = io.BytesIO()
        torch.save(self._content, buffer)
        payload = buffer.getbuffer()
        with atomic_write(self.path) as temporary, temporary.open("wb") as file:
            file.write(MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n")
            file.write(payload)
        self._last_end = time.perf_counter()
        self._last_duration = self._last_end - start


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The content of a checkpoint file, on the CPU; None if there is no file."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return None
    digest, payload = data[len(MAGIC) : len(MAGIC) + 64], data[len(MAGIC) + 65 :]
    if not data.startswith(MAGIC) or hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CheckpointError(
            f"{path} is no checkpoint of this release, or is damaged; give another path, or delete "
            "it if it is a checkpoint"
        )
    try:
        content: dict[str, Any] = torch.load(
            io.BytesIO(payload), map_location="cpu", weights_only=True
        )
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path} can't be read by this release of torch: {error}") from error
    return content


def fingerprint(settings: Mapping[str, Any], *parts: Any) -> str:
    """A name for a fit: the same for the same settings and the same numbers in the parts.

    Parameters
    ----------
    settings : mapping
        Values whose `repr` tells them apart.
    *parts
        Arrays, tensors, modules, dataclasses of these, or None.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.zeros((2, 2))
    >>> fingerprint({"a": 1}, X) == fingerprint({"a": 1}, X.copy()) != fingerprint({"a": 2}, X)
    True
    """
    digest = hashlib.sha256()
    for name, value in sorted(settings.items()):
        if isinstance(value, np.random.RandomState):
            value = [np.asarray(part).tolist() for part in value.get_state()]
        digest.update(f"{name} {value!r}\n".encode())
    for part in parts:
        _take_in(digest, part)
    return digest.hexdigest()


def _take_in(digest: Any, part: Any) -> None:
    if isinstance(part, nn.Module):
        part = part.state_dict()
    elif is_dataclass(part):
        part = vars(part)
    if isinstance(part, Mapping):
        for name, value in part.items():
            digest.update(name.encode())
            _take_in(digest, value)
        return
    if isinstance(part, Tensor):
        part = part.cpu().numpy()
    if isinstance(part, np.ndarray):
        digest.update(f"{part.dtype} {part.shape}".encode())
        digest.update(part.tobytes())
    else:
        digest.update(repr(part).encode())
