"""The paper's simulated data ("Simulation studies", a to c) with their exact log densities."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roundtrip.parameters import check_integer, check_number

FloatArray = NDArray[np.float64]
RandomState = int | np.random.Generator | np.random.RandomState | None

_LOG_2PI = np.log(2 * np.pi)
_CHUNK_ROWS = 2048  # rows per evaluation, so that memory does not grow with the input
_LARGEST_X = 1e100  # squares must not overflow

_MIXTURE_MEANS = np.array([-1.0, 0.0, 1.0])
_OCTAGON_ANGLES = np.pi / 4 * np.arange(1, 9)
_OCTAGON_RADIUS, _OCTAGON_SD = 3.0, 0.16  # the sd along the radius is 1, across it 0.16


@dataclass(frozen=True, eq=False)
class SimulatedData:
    """A sample from a known distribution, with the exact log density.

    Attributes
    ----------
    name : str
        Name of the distribution.
    X : ndarray of shape (n_samples, dim), float64
        The sample; rows are independent.

    Examples
    --------
    >>> data = make_octagon_mixture(100, random_state=0)
    >>> data.name, data.dim, data.X.shape
    ('octagon_mixture', 2, (100, 2))
    >>> data.log_density(data.X).shape
    (100,)
    """

    name: str
    X: FloatArray = field(repr=False)
    _log_density: Callable[[FloatArray], FloatArray] = field(repr=False)

    @property
    def dim(self) -> int:
        """Number of columns of `X`."""
        return self.X.shape[1]

    def log_density(self, x: ArrayLike) -> FloatArray:
        """Return the exact log density.

        Parameters
        ----------
        x : array-like of shape (rows, dim)
            Finite points.

        Returns
        -------
        ndarray of shape (rows,)
            log p(x) in nats.
        """
        x = np.asarray(x, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != self.dim:
            raise ValueError(f"x must have shape (rows, {self.dim}), got {x.shape}")
        if not np.all(np.abs(x) <= _LARGEST_X):  # also catches NaN
            raise ValueError(
                f"x must be finite and within ±{_LARGEST_X:g}, but some values are not"
            )
        out = np.empty(len(x))
        for start in range(0, len(x), _CHUNK_ROWS):
            chunk = slice(start, start + _CHUNK_ROWS)
            out[chunk] = self._log_density(x[chunk])
        return out


def make_independent_mixture(
    n_samples: int = 20_000,
    *,
    dim: int = 2,
    sd: float = 0.5,
    random_state: RandomState = None,
) -> SimulatedData:
    """Draw from the independent Gaussian mixture, the paper's case (a).

    Each coordinate is 1/3 (N(-1, sd²) + N(0, sd²) + N(1, sd²)), so there are 3^dim components.

    Parameters
    ----------
    n_samples : int, default=20000
        Number of rows, at least 1.
    dim : int, default=2
        Number of columns, at least 1.
    sd : float, default=0.5
        Standard deviation of a component, above 0. The paper states 0.5, at which the components
        merge into one mode; its figure shows separate modes and its code uses 0.1.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random generator; None gives a different sample in each call.

    Returns
    -------
    SimulatedData
        With `X` of shape (n_samples, dim).

    Examples
    --------
    >>> data = make_independent_mixture(500, dim=10, sd=0.1, random_state=0)
    >>> data.X.shape
    (500, 10)
    >>> data.log_density([[0.0] * 10]).round(4)  # 10 log(1/3 N(0 | 0, 0.1²))
    array([2.8503])
    """
    n_samples = check_integer("n_samples", n_samples, minimum=1)
    dim = check_integer("dim", dim, minimum=1)
    sd = check_number("sd", sd, above=0)
    rng = _generator(random_state)
    X = rng.choice(_MIXTURE_MEANS, size=(n_samples, dim)) + sd * rng.normal(size=(n_samples, dim))
    return SimulatedData("independent_mixture", X, partial(_independent_mixture_log_density, sd=sd))


def make_octagon_mixture(
    n_samples: int = 20_000, *, random_state: RandomState = None
) -> SimulatedData:
    """Draw from the 8-octagon Gaussian mixture, the paper's case (b).

    The distribution has eight equally likely Gaussians, centred on a circle of radius 3, with
    standard deviation 1 along the radius and 0.16 across it.

    Parameters
    ----------
    n_samples : int, default=20000
        Number of rows, at least 1.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random generator; None gives a different sample in each call.

    Returns
    -------
    SimulatedData
        With `X` of shape (n_samples, 2).

    Examples
    --------
    >>> data = make_octagon_mixture(500, random_state=0)
    >>> data.log_density([[3.0, 0.0], [0.0, 3.0]]).round(4)
    array([-2.0847, -2.0847])
    """
    n_samples = check_integer("n_samples", n_samples, minimum=1)
    rng = _generator(random_state)
    angle = rng.choice(_OCTAGON_ANGLES, size=n_samples)
    along = _OCTAGON_RADIUS + rng.normal(size=n_samples)
    across = _OCTAGON_SD * rng.normal(size=n_samples)
    cos, sin = np.cos(angle), np.sin(angle)
    X = np.column_stack([along * cos - across * sin, along * sin + across * cos])
    return SimulatedData("octagon_mixture", X, _octagon_mixture_log_density)


def make_involute(
    n_samples: int = 20_000, *, sd: float = 0.4, random_state: RandomState = None
) -> SimulatedData:
    """Draw from the involute, the paper's case (c).

    x_1 ~ N(r sin 2r, sd²) and x_2 ~ N(r cos 2r, sd²), with the same r ~ U(0, 2π).

    Parameters
    ----------
    n_samples : int, default=20000
        Number of rows, at least 1.
    sd : float, default=0.4
        Standard deviation around the curve, above 0.
    random_state : int, Generator, RandomState or None, default=None
        Seed or random generator; None gives a different sample in each call.

    Returns
    -------
    SimulatedData
        With `X` of shape (n_samples, 2).

    Examples
    --------
    >>> data = make_involute(500, sd=0.4, random_state=0)
    >>> data.log_density([[0.0, 0.0]]).round(4)
    array([-2.5337])
    """
    n_samples = check_integer("n_samples", n_samples, minimum=1)
    sd = check_number("sd", sd, above=0)
    rng = _generator(random_state)
    r = rng.uniform(0, 2 * np.pi, size=n_samples)
    centre = np.column_stack([r * np.sin(2 * r), r * np.cos(2 * r)])
    X = centre + sd * rng.normal(size=(n_samples, 2))
    return SimulatedData("involute", X, partial(_involute_log_density, sd=sd))


def _independent_mixture_log_density(x: FloatArray, sd: float) -> FloatArray:
    scaled = (x[:, :, None] - _MIXTURE_MEANS) / sd
    log_components = -0.5 * scaled**2 - 0.5 * _LOG_2PI - np.log(3 * sd)
    return np.logaddexp.reduce(log_components, axis=2).sum(axis=1)


def _octagon_mixture_log_density(x: FloatArray) -> FloatArray:
    # In coordinates along and across the radius, a component's covariance is diag(1, 0.16²).
    cos, sin = np.cos(_OCTAGON_ANGLES), np.sin(_OCTAGON_ANGLES)
    along = x[:, :1] * cos + x[:, 1:] * sin - _OCTAGON_RADIUS
    across = (x[:, 1:] * cos - x[:, :1] * sin) / _OCTAGON_SD
    log_components = -0.5 * (along**2 + across**2) - _LOG_2PI - np.log(8 * _OCTAGON_SD)
    return np.logaddexp.reduce(log_components, axis=1)


_FIRST_PANELS = 16  # short enough that the exponent is close to a parabola on each
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_RESOLVED = 10.0  # 16 nodes integrate exp(f) to about 1e-8 where f changes by no more than this
_NEGLIGIBLE = 60.0  # nats; enough even if the largest peak is much narrower than a panel


def _involute_log_density(x: FloatArray, sd: float) -> FloatArray:
    """Return log of 1/(2π) ∫ N(x | (r sin 2r, r cos 2r), sd² I) dr over (0, 2π).

    The width of the integrand depends on sd and on the distance of x from the curve, so no fixed
    grid suits all rows. Panels are halved until the exponent changes little on each of them, and
    negligible panels are dropped. `row[k]` is the row of x to which panel k belongs.
    """
    rows = len(x)
    row = np.repeat(np.arange(rows), _FIRST_PANELS)
    half = np.pi / _FIRST_PANELS  # half a panel's width
    middle = np.tile(half * (2 * np.arange(_FIRST_PANELS) + 1), rows)
    best = np.full(rows, -np.inf)  # largest exponent seen
    done_row, done_value = [], []
    while row.size:
        r = middle[:, None] + half * _NODES
        d1 = (x[row, :1] - r * np.sin(2 * r)) / sd
        d2 = (x[row, 1:] - r * np.cos(2 * r)) / sd
        exponent = -0.5 * (d1**2 + d2**2)
        peak = exponent.max(axis=1)
        spread = peak - exponent.min(axis=1)
        np.maximum.at(best, row, peak)
        # Far from the curve, rounding errors alone change the exponent by this much.
        rounding = 1e-14 * np.abs(peak)
        resolved = spread <= _RESOLVED + rounding
        # A parabola's top between two nodes is above them by less than 5 % of the spread.
        split = ~resolved & (peak + 0.05 * spread > best[row] - _NEGLIGIBLE - rounding)
        done_row.append(row[resolved])
        integral = np.exp(exponent[resolved] - peak[resolved, None]) @ _WEIGHTS
        done_value.append(peak[resolved] + np.log(half * integral))
        half /= 2
        row = np.concatenate([row[split], row[split]])
        middle = np.concatenate([middle[split] - half, middle[split] + half])
    owner, value = np.concatenate(done_row), np.concatenate(done_value)
    top = np.full(rows, -np.inf)
    np.maximum.at(top, owner, value)
    total = np.bincount(owner, weights=np.exp(value - top[owner]), minlength=rows)
    return top + np.log(total) - 2 * _LOG_2PI - 2 * np.log(sd)


def _generator(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        # Drawing the seed advances the RandomState, so a second call gives another sample.
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, Integral) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(
        "random_state must be None, an integer of at least 0, a Generator or a RandomState, "
        f"got {random_state!r}"
    )
