"""Checkpoint files, from which a fit resumes after its process was killed."""

import copy
import hashlib
import io
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from roundtrip.exceptions import CheckpointError, warn_user
from roundtrip.io.atomic import atomic_write

NAME, VERSION = b"roundtrip-checkpoint ", b"1"
MAGIC = NAME + VERSION + b"\n"

MOST_SHOWN = 20
LARGEST_SHARE = 0.05
"""Largest share of the time spent on writing. Large checkpoints are written less often."""


class Checkpoint:
    """A file with the state of every training that a fit consists of.

    The constructor reads the file if it exists. The file is replaced as a whole and has a checksum.
    Reading it executes no code from it.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    fingerprint : str
        Fingerprint of data and settings, see `fingerprint`. A file with a different one is refused.
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
        self._has_warned = False
        content = read_checkpoint(path)
        if content is not None:
            if content["fingerprint"] != fingerprint:
                raise CheckpointError(
                    f"{path} is the checkpoint of a fit with other data or settings; delete it to "
                    "start again, or give another path"
                )
            self._content = content

    @property
    def seed(self) -> int:
        """Seed for a fit without a `random_state`; a resumed fit gets the same one."""
        return int(self._content["seed"])

    def state(self, name: str) -> dict[str, Any] | None:
        """Return the last state of the training `name`, or None."""
        return self._content["states"].get(name)

    def offer(self, name: str, state: Callable[[], dict[str, Any]]) -> None:
        """Write `state()`, unless writing would take more than `LARGEST_SHARE` of the time."""
        waited = time.perf_counter() - self._last_end
        if waited * LARGEST_SHARE >= self._last_duration:
            self.keep(name, state())

    def keep(self, name: str, state: dict[str, Any]) -> None:
        """Write `state`, made of numbers, strings, tensors, lists and dicts."""
        start = time.perf_counter()
        self._content["states"][name] = copy.deepcopy(state)  # training changes these tensors
        buffer = io.BytesIO()
        torch.save(self._content, buffer)
        payload = buffer.getbuffer()
        try:
            with atomic_write(self.path) as temporary, temporary.open("wb") as file:
                file.write(MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n")
                file.write(payload)
        except OSError as error:  # a full disk must not end a long training
            if not self._has_warned:
                self._has_warned = True
                warn_user(
                    f"the checkpoint can't be written, and training goes on without it: {error}"
                )
        self._last_end = time.perf_counter()
        self._last_duration = self._last_end - start


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the content of a checkpoint file, on the CPU, or None if there is no file."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return None
    if data.startswith(NAME) and not data.startswith(MAGIC):
        version = data[len(NAME) :].partition(b"\n")[0][:MOST_SHOWN].decode(errors="replace")
        raise CheckpointError(
            f"{path} is a checkpoint of version {version!r}, this release reads version "
            f"{VERSION.decode()}: resume with the release that wrote it, or delete it to start anew"
        )
    digest, payload = data[len(MAGIC) : len(MAGIC) + 64], data[len(MAGIC) + 65 :]
    if not data.startswith(MAGIC) or hashlib.sha256(payload).hexdigest().encode() != digest:
        raise CheckpointError(
            f"{path} is not a checkpoint of this release, or it is damaged; give another path, or "
            "delete it if it is a checkpoint"
        )
    try:
        content: dict[str, Any] = torch.load(
            io.BytesIO(payload), map_location="cpu", weights_only=True
        )
    except Exception as error:  # the pickle of another release fails in any way
        raise CheckpointError(f"{path} can't be read by this release of torch: {error}") from error
    kinds = {"fingerprint": str, "seed": int, "states": dict}
    if not isinstance(content, dict) or not all(
        isinstance(content.get(name), kind) for name, kind in kinds.items()
    ):
        raise CheckpointError(f"{path} has no state of a fit; delete it, or give another path")
    return content


def fingerprint(settings: Mapping[str, Any], *parts: Any) -> str:
    """Return a digest of settings and data, which identifies a fit.

    Parameters
    ----------
    settings : mapping
        Settings by name. Different settings must have different `repr`.
    *parts : array, Tensor, Module, dataclass of these, or None
        Data and models, of which every number enters the digest.

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
