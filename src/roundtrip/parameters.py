"""Checks of parameters, the base class of components, and random streams."""

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state


def check_integer(name: str, value: Any, *, minimum: int) -> int:
    """Return `value` as an int; raise `ValueError` unless it is an integer of at least `minimum`.

    Examples
    --------
    >>> check_integer("batch_size", 0, minimum=1)
    Traceback (most recent call last):
    ValueError: batch_size must be an integer of at least 1, got 0
    """
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= minimum:
        return int(value)
    raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")


def check_number(name: str, value: Any, *, above: float, below: float = math.inf) -> float:
    """Return `value` as a float; raise `ValueError` unless it lies between `above` and `below`.

    Both limits are exclusive, so infinity and NaN are refused.

    Examples
    --------
    >>> check_number("learning_rate", -1, above=0)
    Traceback (most recent call last):
    ValueError: learning_rate must be a number above 0, got -1
    """
    if isinstance(value, Real) and not isinstance(value, bool) and above < float(value) < below:
        return float(value)
    limits = f"above {above:g}" + (f" and below {below:g}" if below < math.inf else "")
    raise ValueError(f"{name} must be a number {limits}, got {value!r}")


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """Return `value`; raise `ValueError` unless it is one of `allowed`.

    Examples
    --------
    >>> check_choice("method", "magic", ["importance", "laplace"])
    Traceback (most recent call last):
    ValueError: method must be one of 'importance', 'laplace', got 'magic'
    """
    if value in allowed:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def check_widths(name: str, value: Any) -> tuple[int, ...]:
    """Return `value` as a tuple of hidden-layer widths, or raise `ValueError`.

    There must be at least one width.

    Examples
    --------
    >>> check_widths("generator_widths", 64)
    Traceback (most recent call last):
    ValueError: generator_widths must be a sequence of layer widths such as (128, 128), got 64
    """
    if is_sequence(value) and len(value) > 0:
        return tuple(check_integer(f"each width of {name}", width, minimum=1) for width in value)
    raise ValueError(f"{name} must be a sequence of layer widths such as (128, 128), got {value!r}")


def check_numbers(name: str, value: Any, *, above: float, below: float = math.inf) -> list[float]:
    """Return `value` as a list of numbers between `above` and `below`, or raise `ValueError`.

    There must be at least one number; both limits are exclusive.

    Examples
    --------
    >>> check_numbers("sigma_grid", 0.1, above=0)
    Traceback (most recent call last):
    ValueError: sigma_grid must be a sequence of numbers, got 0.1
    """
    if is_sequence(value) and len(value) > 0:
        return [check_number(f"each of {name}", item, above=above, below=below) for item in value]
    raise ValueError(f"{name} must be a sequence of numbers, got {value!r}")


def is_sequence(value: Any) -> bool:
    """Whether `value` is a list, tuple or one-dimensional array.

    Examples
    --------
    >>> is_sequence((1, 2)), is_sequence("12")
    (True, False)
    """
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Sequence) and not isinstance(value, str)


class Component:
    """A group of settings that is passed to an estimator as one parameter.

    A component is immutable and stores the arguments of its constructor unchanged; `fit` calls
    `check`. scikit-learn's ``get_params``, ``clone``, ``set_params(name__setting=...)`` and grid
    searches work with components. Define your own components as frozen dataclasses.

    Examples
    --------
    >>> from roundtrip.model.noise import Mixture
    >>> Mixture(boxes=8)
    Mixture(boxes=8)
    >>> Mixture(boxes=8).with_params(gaussians=4).get_params()
    {'gaussians': 4, 'boxes': 8, 'box_share': 'auto', 'outside_share': 0.0001}
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls)
        return {name: parameter.default for name, parameter in signature.parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return every setting by name, as in scikit-learn.

        Parameters
        ----------
        deep : bool, default=True
            Ignored; present because scikit-learn passes it.

        Returns
        -------
        dict
            Settings by name.
        """
        return {name: getattr(self, name) for name in self._defaults()}

    def with_params(self, **settings: Any) -> Self:
        """Return a component of the same class with some settings replaced.

        Parameters
        ----------
        **settings : object
            New values by the name of the setting.

        Returns
        -------
        Component
            The new component; this one stays as it is.
        """
        known = self.get_params()
        for name in settings:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no setting {name!r}; it has "
                    f"{', '.join(known) or 'none'}"
                )
        return type(self)(**(known | settings))

    def check(self) -> None:
        """Raise a `ValueError` that names the first setting whose value is not allowed."""

    def __sklearn_clone__(self) -> Self:
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if type(value) is not type(defaults[name]) or value != defaults[name]
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def as_component(
    name: str, value: Any, kind: type[Component], shorthands: Mapping[str, Component]
) -> Any:
    """Return `value`, or the component that it is the shorthand for.

    Parameters
    ----------
    name : str
        Name of the parameter, for error messages.
    value : object
        A component or a shorthand.
    kind : type
        Base class that the component must have.
    shorthands : mapping
        Component by shorthand.

    Returns
    -------
    Component
        An instance of `kind`; its settings are not checked.

    Examples
    --------
    >>> from roundtrip.model.noise import Mixture, Noise
    >>> as_component("noise", "mixture", Noise, {"mixture": Mixture()})
    Mixture()
    >>> as_component("noise", "loud", Noise, {"mixture": Mixture()})
    Traceback (most recent call last):
    ValueError: noise must be 'mixture' or an instance of Noise, got 'loud'
    """
    if isinstance(value, str) and value in shorthands:
        value = shorthands[value]
    if not isinstance(value, kind):
        names = ", ".join(map(repr, shorthands))
        raise ValueError(f"{name} must be {names} or an instance of {kind.__name__}, got {value!r}")
    return value


def is_auto(value: Any) -> bool:
    """Whether `value` is "auto", which leaves the choice to the estimator.

    Examples
    --------
    >>> is_auto("auto"), is_auto(3)
    (True, False)
    """
    return isinstance(value, str) and value == "auto"


def random_stream(
    random_state: int | np.random.RandomState | None,
) -> np.random.RandomState:
    """Return a random generator for `random_state`, as scikit-learn's `check_random_state` does.

    None gives a newly seeded generator, not NumPy's global one.

    Examples
    --------
    >>> random_stream(0).randint(100)
    44
    """
    return np.random.RandomState() if random_state is None else check_random_state(random_state)


def named_seed(seed: int, *name: str) -> int:
    """The seed of the random stream `name`, spawned from the one sequence that `seed` begins.

    Streams of different names are independent, which those of neighbouring seeds need not be.

    Parameters
    ----------
    seed : int
        Entropy of the `numpy.random.SeedSequence`.
    *name : str
        Name of the stream, perhaps in several parts.

    Returns
    -------
    int
        A seed of 63 bits.

    Examples
    --------
    >>> named_seed(0, "scoring") == named_seed(0, "scoring") != named_seed(0, "split")
    True
    """
    key = tuple("/".join(name).encode())
    state = np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


class Seeds:
    """Seeds of the random streams of a fit, by name.

    Parameters
    ----------
    seed : int
        The one number that all of them follow from.

    Examples
    --------
    >>> seeds = Seeds(3)
    >>> seeds["weights"] == Seeds(3)["weights"] != seeds["training"]
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @classmethod
    def from_random_state(cls, random_state: int | np.random.RandomState | None) -> "Seeds":
        """The seeds that follow from scikit-learn's `random_state`; None: new ones."""
        return cls(int(random_stream(random_state).randint(2**31 - 1)))

    def __getitem__(self, name: str) -> int:
        return named_seed(self.seed, name)

    def rng(self, name: str) -> np.random.Generator:
        """NumPy's generator for the stream `name`."""
        return np.random.default_rng(self[name])
