"""Labels of axes for columns of every kind."""

from typing import TYPE_CHECKING, Any

from roundtrip.data.kinds import Column

if TYPE_CHECKING:
    from matplotlib.axis import Axis

LONGEST = 14
"""Letters of a level's name on an axis."""


def label_axis(axis: "Axis", label: Any, column: Column) -> None:
    """Label the axis of a number, a date (in days since 1970) or a duration (in days)."""
    if column.kind == "date":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))
    axis.set_label_text(f"{label} (days)" if column.kind == "duration" else str(label))


def short(level: Any) -> str:
    """Return the name of a level, cut off if it is long.

    Examples
    --------
    >>> short("Married-civ-spouse"), short(3)
    ('Married-civ-s…', '3')
    """
    text = str(level)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
