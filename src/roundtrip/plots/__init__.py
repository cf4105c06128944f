"""Pictures. Needs matplotlib: ``pip install 'roundtrip[plots]'``."""

from roundtrip.plots.conditional import conditional
from roundtrip.plots.curves import interval_panels, lines
from roundtrip.plots.images import image_grid
from roundtrip.plots.pairs import pair_marginals
from roundtrip.plots.panels import density_grid, density_panels

__all__ = [
    "conditional",
    "density_grid",
    "density_panels",
    "image_grid",
    "interval_panels",
    "lines",
    "pair_marginals",
]
