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
    # Adding zero turns -0.0 into 0.0: equal values must have equal bytes.
    rows = np.ascontiguousarray(rows, dtype=np.float64) + 0.0
    salt = seed.to_bytes(8, "little")
    keys = (hashlib.blake2b(row.tobytes(), digest_size=16, salt=salt).digest() for row in rows)
    return [
        np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little"))) for key in keys
    ]
