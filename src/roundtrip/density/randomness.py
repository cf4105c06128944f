"""Random numbers of a row: the same for equal rows, independent for different rows.

The density of a row must not depend on other rows, so that draws can't come from one stream for the
whole table. If all rows shared one set of draws, their errors would be correlated, and the mean
over a table would have the error of a single row. Therefore each row has its own stream, with a
seed made from its values.
"""

import hashlib

import numpy as np


def row_generators(rows: np.ndarray, seed: int) -> list[np.random.Generator]:
    """Return a random generator for each row, determined by `seed` and the values of the row.

    Examples
    --------
    >>> import numpy as np
    >>> first, second, third = row_generators(np.array([[1.0], [1.0], [2.0]]), seed=0)
    >>> a, b, c = first.random(), second.random(), third.random()
    >>> a == b, a == c
    (True, False)
    """
    return [np.random.Generator(np.random.Philox(key=_hash(row, seed, 16))) for row in rows]


def row_keys(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return a random key for each row, `(rows,)` uint64; quicker than a generator.

    Examples
    --------
    >>> import numpy as np
    >>> a, b, c = row_keys(np.array([[1.0], [1.0], [2.0]]), seed=0)
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    return np.array([_hash(row, seed, 8) for row in rows], dtype=np.uint64)


def seed_of(values: np.ndarray, seed: int) -> int:
    """Return a seed that depends on `seed` and on an array of values.

    Examples
    --------
    >>> import numpy as np
    >>> seed_of(np.array([0.0]), 1) == seed_of(np.array([1.0]), 1)
    False
    """
    return _hash(values, seed, 7)


def _hash(values: np.ndarray, seed: int, n_bytes: int) -> int:
    # Adding zero turns -0.0 into 0.0, so that equal values have equal bytes.
    content = (np.asarray(values, dtype=np.float64) + 0.0).tobytes()
    salt = seed.to_bytes(8, "little")
    digest = hashlib.blake2b(content, digest_size=n_bytes, salt=salt).digest()
    return int.from_bytes(digest, "little")
