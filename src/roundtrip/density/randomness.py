"""Random numbers that belong to a row: the same for equal rows, independent for different ones.

A row's density must not depend on the other rows of a call, so its draws cannot come from one
stream through the table. Sharing one set of draws between all rows would do, but then all rows err
together: the mean over a table is off by as much as a single row. Here the seed of a row's own
stream is made from its values.
"""

import hashlib

import numpy as np


def row_generators(rows: np.ndarray, seed: int) -> list[np.random.Generator]:
    """A random generator for each row of a float64 table, determined by `seed` and its values.

    >>> import numpy as np
    >>> first, second, third = row_generators(np.array([[1.0], [1.0], [2.0]]), seed=0)
    >>> a, b, c = first.random(), second.random(), third.random()
    >>> a == b, a == c
    (True, False)
    """
    return [np.random.Generator(np.random.Philox(key=_hash(row, seed, 16))) for row in rows]


def seed_of(values: np.ndarray, seed: int) -> int:
    """Another seed for each array of float64 values.

    >>> import numpy as np
    >>> seed_of(np.array([0.0]), 1) == seed_of(np.array([1.0]), 1)
    False
    """
    return _hash(values, seed, 7)


def _hash(values: np.ndarray, seed: int, n_bytes: int) -> int:
    # Adding zero turns -0.0 into 0.0: equal values must have equal bytes.
    content = (np.asarray(values, dtype=np.float64) + 0.0).tobytes()
    salt = seed.to_bytes(8, "little")
    digest = hashlib.blake2b(content, digest_size=n_bytes, salt=salt).digest()
    return int.from_bytes(digest, "little")
