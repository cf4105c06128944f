"""`TimeOfParts`: how a fit divides its time between training and the encoder of parts of rows."""

import time
from dataclasses import dataclass
from typing import Literal

SHARE, ASKED_SHARE = 0.05, 0.1
"""Of the time of a fit: for "auto", and for users who ask for the encoder."""

LEAST_TIME = 100.0
"""Seconds of a fit below which "auto" leaves the encoder to the first question. It takes 10 seconds
for 5 columns and 90 for 90."""


@dataclass(frozen=True)
class TimeOfParts:
    """Seconds for training, and for the encoder of parts of rows after it.

    Attributes
    ----------
    asked : bool or "auto"
        Parameter `part_encoder` of the estimator.
    max_time : float or None
        Time limit of the fit.
    start : float
        When the fit started, by `time.perf_counter`.

    Examples
    --------
    >>> time_of = TimeOfParts("auto", 200.0, time.perf_counter())
    >>> round(time_of.training), round(time_of.parts)
    (190, 10)
    >>> TimeOfParts("auto", 50.0, time.perf_counter()).parts
    0.0
    """

    asked: bool | Literal["auto"]
    max_time: float | None
    start: float

    @property
    def training(self) -> float | None:
        """Seconds that are left for training."""
        if self.max_time is None:
            return None
        return self.max_time - self._reserved - self._elapsed

    @property
    def parts(self) -> float:
        """Seconds for the encoder, once training has ended; 0 for none."""
        if self.max_time is None:
            if self.asked != "auto":
                return float("inf") if self.asked else 0.0
            return SHARE * self._elapsed if self._elapsed >= LEAST_TIME else 0.0
        return self._reserved

    @property
    def _reserved(self) -> float:
        assert self.max_time is not None
        if self.asked == "auto":
            return SHARE * self.max_time if self.max_time >= LEAST_TIME else 0.0
        return ASKED_SHARE * self.max_time if self.asked else 0.0

    @property
    def _elapsed(self) -> float:
        return time.perf_counter() - self.start
