"""`new_figure`: a figure that belongs to no window."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(figsize: tuple[float, float]) -> "Figure":
    """Return an empty figure; `ImportError` without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'roundtrip[plots]'") from error
    return Figure(figsize=figsize, layout="constrained")
