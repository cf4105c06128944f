"""Free memory, so that a computation that needs more is refused before it starts."""

import os
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
GIGABYTE = 1e9


def free_memory() -> float:
    """Return the bytes that a process may still take, infinity where the system does not say.

    Examples
    --------
    >>> free_memory() > 0
    True
    """
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        return 1024.0 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        pass
    try:  # all of it, where the share that is free is not known
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def check_memory(needed: float, task: str, advice: str) -> None:
    """Raise `MemoryError` for a task that needs more bytes than are free.

    Parameters
    ----------
    needed : float
        Bytes.
    task : str
        What needs them, for the message.
    advice : str
        What to change, for the message.

    Examples
    --------
    >>> check_memory(1e30, "scoring everything", "score less")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    MemoryError: scoring everything needs about 1e+21 GB of memory, but ... GB are free; score less
    """
    free = free_memory()
    if needed > free:
        raise MemoryError(
            f"{task} needs about {needed / GIGABYTE:.3g} GB of memory, but "
            f"{free / GIGABYTE:.3g} GB are free; {advice}"
        )
