"""`SavedToFile`: base class of estimators with `save`, which `roundtrip.load` reads."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from roundtrip.io.model_file import is_ours, plain, restored, write_model_file
from roundtrip.parameters import Component

T = TypeVar("T")

CLASS = "class"
"""Key of the JSON content under which the class of the saved object is named."""


@dataclass
class FileParts:
    """The content of a model file, or of a part of one.

    Attributes
    ----------
    content : dict
        JSON content: numbers, strings, lists and dicts.
    tensors : dict
        Tensors by name.

    Examples
    --------
    >>> parts = FileParts({}, {})
    >>> parts.add("model", FileParts({"sigma": 0.1}, {"weight": torch.ones(1)}))
    >>> parts.tensors, parts.within("model").content
    ({'model.weight': tensor([1.])}, {'sigma': 0.1})
    """

    content: dict[str, Any]
    tensors: dict[str, Tensor]

    def within(self, name: str) -> "FileParts":
        """Return the part that `add` stored under `name`."""
        start = f"{name}."
        own = {key: each for key, each in self.tensors.items() if key.startswith(start)}
        return FileParts(
            self.content[name], {key.removeprefix(start): each for key, each in own.items()}
        )

    def add(self, name: str, part: "FileParts") -> None:
        """Store another part under `name`."""
        self.content[name] = part.content
        self.tensors |= {f"{name}.{key}": each for key, each in part.tensors.items()}


@dataclass(frozen=True)
class Restoring:
    """Options of reading a file.

    Attributes
    ----------
    device : torch.device
        Device of the restored models.
    components : mapping
        Component classes that the file may name, by name.
    """

    device: torch.device
    components: Mapping[str, type[Component]]

    def parameters(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters whose `plain_parameters` content this is."""
        return {name: restored(value, self.components) for name, value in content.items()}

    def estimator(self, kind: type[T], content: Mapping[str, Any] | None) -> T | None:
        """Return the unfitted estimator whose `plain_estimator` content this is, or None."""
        return None if content is None else kind(**self.parameters(content))


def plain_estimator(estimator: Any) -> dict[str, Any] | None:
    """Return the parameters of an estimator as JSON content; None stays None."""
    return None if estimator is None else plain_parameters(estimator.get_params(deep=False))


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON content."""
    content = {name: plain(value) for name, value in parameters.items()}
    for name, value in content.items():
        try:
            json.dumps(value)
        except TypeError as error:
            raise ValueError(
                f"{name}={parameters[name]!r} can't be saved: a model file holds numbers, strings "
                f"and sequences of them ({error})"
            ) from error
    return content


class SavedToFile(ABC):
    """Base class that adds `save`; subclasses define the content of the file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted object atomically to a file that `roundtrip.load` reads.

        Parameters
        ----------
        path : str or os.PathLike
            The file; an existing one is replaced.
        """
        check_is_fitted(self)
        parts = self._file_parts()
        # A user's subclass is loaded as what it was derived from.
        kind = next(each for each in type(self).__mro__ if is_ours(each))
        write_model_file(path, {CLASS: kind.__name__, **parts.content}, parts.tensors)

    @abstractmethod
    def _file_parts(self) -> FileParts:
        """Return the content of the file."""

    @classmethod
    @abstractmethod
    def _from_file_parts(cls, parts: FileParts, how: Restoring) -> Self:
        """Return the fitted object whose `_file_parts` these are."""
