"""Progress bars on stderr for training, scoring and other loops."""

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)
from rich.text import Text

T = TypeVar("T")

SHORT_NAMES = {
    "sigma": "sigma",
    "bound": "training bound (scaled)",
    "g_adversarial": "G",
    "h_adversarial": "H",
    "d_x": "D_x",
    "d_z": "D_z",
    "roundtrip_x": "rt_x",
    "roundtrip_z": "rt_z",
}


def scoring_bar(*, enabled: bool) -> Progress:
    """Return a progress bar with the elapsed time, to which tasks can be added."""
    return Progress(
        *Progress.get_default_columns(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not enabled,
    )


def tracked(
    items: Iterable[T], description: str, *, total: int | None = None, enabled: bool
) -> Iterable[T]:
    """Iterate over items and show a progress bar.

    Parameters
    ----------
    items : iterable
        The items.
    description : str
        Text left of the bar.
    total : int or None, default=None
        Number of items, if they have no length.
    enabled : bool
        Whether to show the bar.

    Returns
    -------
    iterable
        The same items.

    Examples
    --------
    >>> list(tracked([1, 2], "counting", enabled=False))
    [1, 2]
    """
    console = Console(stderr=True)
    return track(items, description, total=total, console=console, disable=not enabled)


class TrainingProgress:
    """A context manager that shows the progress of training.

    It shows the epoch, the remaining time, the speed, the validation log-likelihood and the losses.

    Parameters
    ----------
    name : str
        Text left of the bar.
    unit : str, default="rows"
        Unit of the speed, such as "images".
    span : tuple of float, default=(0.0, 1.0)
        Where this training starts and ends in the whole fit, which the bar shows.
    enabled : bool
        Whether to show anything.
    """

    def __init__(
        self,
        name: str,
        *,
        unit: str = "rows",
        span: tuple[float, float] = (0.0, 1.0),
        enabled: bool,
    ) -> None:
        self._bar = Progress(
            TextColumn("{task.description}, epoch {task.fields[epoch]}"),
            BarColumn(bar_width=10),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("≤"),  # patience may end a training earlier
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
        )
        self._task = self._bar.add_task(name, total=1.0, epoch=0)
        self._bar.update(self._task, completed=span[0])
        self._span = span
        self._unit = unit
        self._rows = 0
        self._start = time.perf_counter()
        self._validated: list[str] = []
        self._report = Text()
        self._live = (
            Live(Group(self._bar, self._report), console=Console(stderr=True)) if enabled else None
        )

    def __enter__(self) -> "TrainingProgress":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            if error is None:
                self._bar.update(self._task, completed=self._span[1])
            self._live.stop()
            if not self._live.console.is_terminal:
                self._live.console.print()  # rich ends the last line only on a terminal

    def step(self, share: float, rows: int) -> None:
        """Report a finished step.

        Parameters
        ----------
        share : float
            Share of this training that is done, from 0 to 1.
        rows : int
            Rows of this step.
        """
        if not self._live:
            return
        self._rows += rows
        start, end = self._span
        self._bar.update(self._task, completed=start + (end - start) * share)
        self._update_report()

    def epoch(self, epoch: int, record: Mapping[str, float]) -> None:
        """Report a finished and validated epoch.

        Parameters
        ----------
        epoch : int
            Its number, from 1.
        record : mapping
            Its "validation_log_likelihood" and losses.
        """
        self._bar.update(self._task, epoch=epoch)
        losses = [
            f"{short} {record[name]:.3g}" for name, short in SHORT_NAMES.items() if name in record
        ]
        self._validated = [f"validation log-likelihood {record['validation_log_likelihood']:.3f}"]
        if losses:
            self._validated.append("  ".join(losses))
        self._update_report()

    def _update_report(self) -> None:
        seconds = max(time.perf_counter() - self._start, 1e-9)
        speed = f"{self._rows / seconds:,.0f} {self._unit}/s"
        self._report.plain = "\n".join([*self._validated, speed])
