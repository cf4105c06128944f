"""Images as they come: layouts, units, mistakes."""

import numpy as np
import pytest

from roundtrip import Roundtrip
from roundtrip.data.images import ImageLayout


@pytest.mark.parametrize("channels_first", [False, True])
@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_images_come_back_as_they_came(channels_first, kind):
    rng = np.random.default_rng(0)
    X = rng.random((5, 8, 12, 3))
    if kind == "bytes":
        X = (255 * X).astype(np.uint8)
    if channels_first:
        X = np.moveaxis(X, 3, 1)
    layout = ImageLayout.of(X)
    rows = layout.flatten(X)
    assert rows.shape == (5, 288)
    np.testing.assert_array_equal(layout.unflatten(rows.astype(float)), X)


@pytest.mark.parametrize(
    ("X", "word"),
    [
        (np.zeros((2, 8, 8, 2)), "channels"),
        (np.zeros((2, 9, 8, 1)), "divisible by 4"),
        (np.full((2, 8, 8, 1), 7.0), "between 0 and 1"),
        (np.full((2, 8, 8, 1), "a"), "numbers"),
        (np.full((2, 8, 8, 1), 256), "between 0 and 255"),
        (np.full((2, 8, 8, 1), -1), "between 0 and 255"),
        (np.ones((2, 8, 8, 1), dtype=int), "none of these exceeds 1"),
        (np.full((2, 8, 8, 1), 16, dtype=np.uint8), "none of these exceeds 16"),
    ],
)
def test_bad_images_are_named(X, word):
    with pytest.raises(ValueError, match=word):
        Roundtrip().fit(X)
