import numpy as np
import pytest

from roundtrip.plots import image_grid


@pytest.mark.parametrize("channels", [1, 3])
def test_bytes_are_drawn_as_bytes(channels):
    """Colour bytes that become floats on the way would all be drawn white."""
    images = np.full((1, 8, 8, channels), 49, dtype=np.uint8)
    (axes,) = image_grid(images, [""], [""]).axes
    drawn = axes.images[0].to_rgba(axes.images[0].get_array(), bytes=True)
    np.testing.assert_allclose(drawn[..., :3], 49, atol=1)  # a step of the grey scale
