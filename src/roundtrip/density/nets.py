"""Randomised nets: points in the unit cube that are spread more evenly than random ones.

The points of a net are the first ones of a Sobol sequence. A random digital shift per row, the same
for all points, makes each point uniform, so that means over a net are unbiased.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

MOST_POINTS = 1536
SIZES = (64, 96, 128, 192, 256, 384, 512, 768, 1024, MOST_POINTS)
"""Points of a net, which grows from size to size. A row that needs more than the last is left to
adaptive sampling. Other numbers than powers of two and one and a half times them fill the cube much
less evenly."""

_BITS = 30
_SCRAMBLE_SEED = 0


@lru_cache(maxsize=8)
def _sobol_integers(dim: int) -> Tensor:
    """Return the digits of the Sobol points, `(MOST_POINTS, dim)` int64 below 2**_BITS."""
    engine = torch.quasirandom.SobolEngine(dim, scramble=True, seed=_SCRAMBLE_SEED)
    integers = (engine.draw(MOST_POINTS, dtype=torch.float64) * 2**_BITS).long()
    integers[0] = engine.shift  # which the engine rounds to float32
    return integers


def shifted_nets(keys: np.ndarray, start: int, stop: int, dim: int, device: torch.device) -> Tensor:
    """Return points of one net per row, `(rows, stop - start, dim)` float64, in the open unit cube.

    Parameters
    ----------
    keys : numpy.ndarray
        Random key of each row, `(rows,)` uint64, see `row_keys`. Nets of other keys are
        independent.
    start, stop : int
        Range of the points, within the first `MOST_POINTS` of the sequence.
    dim : int
        Dimension of the cube.
    device : torch.device
        Device of the result.

    Returns
    -------
    Tensor
        The points.

    Examples
    --------
    >>> import numpy as np, torch
    >>> keys = np.array([1, 2], dtype=np.uint64)
    >>> shifted_nets(keys, 0, 64, 3, torch.device("cpu")).shape
    torch.Size([2, 64, 3])
    """
    column = np.arange(dim, dtype=np.uint64)
    shifts = _mixed(_mixed(keys)[:, None] + _mixed(column)) >> np.uint64(64 - _BITS)
    shift = torch.from_numpy(shifts.astype(np.int64)).to(device)
    digits = _sobol_integers(dim)[start:stop].to(device) ^ shift[:, None]
    return (digits.double() + 0.5) / 2**_BITS


def uniform_of_keys(keys: np.ndarray) -> np.ndarray:
    """Return a random number in (0, 1) for each key, independent of the nets of these keys.

    Examples
    --------
    >>> import numpy as np
    >>> bool(0 < uniform_of_keys(np.array([7], dtype=np.uint64))[0] < 1)
    True
    """
    other = _mixed(keys ^ _mixed(np.array([2**32], dtype=np.uint64)))
    return ((other >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Return pseudo-random integers, the output function of the generator SplitMix64."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
