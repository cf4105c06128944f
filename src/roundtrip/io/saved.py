"""`SavedToFile`: what can be saved to a model file and read again by `roundtrip.load`."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from roundtrip.io.model_file import plain, restored, write_model_file
from roundtrip.parameters import Component

T = TypeVar("T")

CLASS = "class"
"""Entry of a file's content that names the class it holds."""


@dataclass
class FileParts:
    """What a model file holds: plain JSON and tensors.

    Attributes
    ----------
    content : dict
        Numbers, strings, lists and dicts.
    tensors : dict
        Tensors by name.
    """

    content: dict[str, Any]
    tensors: dict[str, Tensor]

    def within(self, name: str) -> "FileParts":
        """Only the part `name`, as `add` put it in."""
        start = f"{name}."
        own = {key: each for key, each in self.tensors.items() if key.startswith(start)}
        return FileParts(
            self.content[name], {key.removeprefix(start): each for key, each in own.items()}
        )

    def add(self, name: str, part: "FileParts") -> None:
        """Put in another part under a name."""
        self.content[name] = part.content
        self.tensors |= {f"{name}.{key}": each for key, each in part.tensors.items()}


@dataclass(frozen=True)
class Restoring:
    """How a file is read.

    Attributes
    ----------
    device : torch.device
        Where models are put.
    components : mapping
        Component classes by name.
    """

    device: torch.device
    components: Mapping[str, type[Component]]

    def parameters(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters that `plain_parameters` made plain."""
        return {name: restored(value, self.components) for name, value in content.items()}

    def estimator(self, kind: type[T], content: Mapping[str, Any] | None) -> T | None:
        """An unfitted estimator of which `plain_estimator` was made, or None."""
        return None if content is None else kind(**self.parameters(content))


def plain_estimator(estimator: Any) -> dict[str, Any] | None:
    """The parameters of an unfitted estimator, or None, as JSON knows them."""
    return None if estimator is None else plain_parameters(estimator.get_params(deep=False))


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """An estimator's parameters as JSON knows them."""
    return {name: plain(value) for name, value in parameters.items()}


class SavedToFile(ABC):
    """Adds `save`; a class says what its file holds and how to read it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted object to a file that `roundtrip.load` reads; never half a file.

        Parameters
        ----------
        path : str or os.PathLike
            Name of the file; an old one is replaced.
        """
        check_is_fitted(self)
        parts = self._file_parts()
        write_model_file(path, {CLASS: type(self).__name__, **parts.content}, parts.tensors)

    @abstractmethod
    def _file_parts(self) -> FileParts:
        """What the file holds."""

    @classmethod
    @abstractmethod
    def _from_file_parts(cls, parts: FileParts, how: Restoring) -> Self:
        """The fitted object that `_file_parts` was made of."""
