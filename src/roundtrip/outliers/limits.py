"""`Limits`: the time and the checkpoints of the fits of a detector."""

import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Limits that a detector passes on to the fits of its density.

    Attributes
    ----------
    max_time : float or None
        Seconds for all fits.
    checkpoint : str or os.PathLike or None
        Checkpoint of the first fit.

    Examples
    --------
    >>> Limits(60.0, "fit.ckpt").of_fit(1, 4)
    {'max_time': 15.0, 'checkpoint': 'fit.ckpt.1'}
    """

    max_time: float | None
    checkpoint: str | os.PathLike[str] | None

    def of_fit(self, number: int, fits: int) -> dict[str, Any]:
        """Arguments of one of so many fits, counted from 0."""
        file = self.checkpoint
        return {
            "max_time": None if self.max_time is None else self.max_time / fits,
            "checkpoint": f"{os.fspath(file)}.{number}" if file is not None and number else file,
        }
