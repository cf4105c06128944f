"""`Budget`: the time limit of a fit."""

import math
import time


class Budget:
    """A time limit that starts when the object is created.

    Parameters
    ----------
    max_time : float or None
        Seconds; None is no limit.

    Examples
    --------
    >>> budget = Budget(1000.0)
    >>> 0 <= budget.elapsed < 1000 and budget.left <= 1000 and not budget.spent
    True
    >>> Budget(None).left, Budget(None).fraction
    (inf, 0.0)
    """

    def __init__(self, max_time: float | None) -> None:
        self.max_time = math.inf if max_time is None else max_time
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    @property
    def left(self) -> float:
        """Seconds until `max_time`; negative once it has passed."""
        return self.max_time - self.elapsed

    @property
    def spent(self) -> bool:
        """Whether `max_time` has passed."""
        return self.left <= 0

    @property
    def fraction(self) -> float:
        """Share of `max_time` that has passed; 0 without a limit."""
        return self.elapsed / self.max_time
