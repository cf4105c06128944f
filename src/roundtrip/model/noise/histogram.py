"""Places of boxes before training: quantiles of a column, or the likeliest histogram of it."""

import heapq
import math

import numpy as np
import torch

FINE_BINS = 1024
"""Bins before merging; each holds as many values."""

FEWEST_ROWS = 5_000
"""With fewer rows boxes start between quantiles: single bins would follow chance."""


LEAST_GAIN = 0.08
"""Nats per value by which the likeliest histogram must be ahead of quantiles. On continuous columns
its bins follow chance, which gains some 0.05 nats; spikes gain more."""


def box_edges(values: np.ndarray, boxes: int) -> np.ndarray:
    """Return the edges of neighbouring boxes for a column, `(boxes + 1,)` in ascending order.

    Examples
    --------
    >>> box_edges(np.arange(9.0), 4).tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    levels = torch.linspace(0, 1, boxes + 1, dtype=torch.float64)
    quantiles = np.sort(values)[(levels * (len(values) - 1)).round().long().numpy()]
    if len(values) < FEWEST_ROWS or boxes < 2:
        return quantiles
    likely = likely_edges(values, boxes)
    gain = _of_histogram(values, likely) - _of_histogram(values, quantiles)
    return likely if gain > LEAST_GAIN * len(values) else quantiles


def likely_edges(values: np.ndarray, bins: int) -> np.ndarray:
    """Return the edges of a histogram whose bins follow spikes and gaps of a column.

    Starting from many bins of equal mass, neighbours whose densities differ least are merged: those
    pairs that lower the likelihood of the values least. A spike thus ends in one bin, however many
    values it has, and bins are left for what is rare.

    Parameters
    ----------
    values : numpy.ndarray of shape (rows,)
        Values of the column.
    bins : int
        Number of bins.

    Returns
    -------
    numpy.ndarray
        `(bins + 1,)` in ascending order; equal edges if there are fewer distinct values.

    Examples
    --------
    >>> values = np.concatenate([np.linspace(0, 0.1, 900), np.linspace(5, 6, 100)])
    >>> likely_edges(values, 3).round(1).tolist()
    [0.0, 0.1, 5.0, 6.0]
    """
    ordered = np.sort(values)
    levels = np.linspace(0, len(ordered) - 1, min(FINE_BINS, max(len(ordered) - 1, bins)) + 1)
    edges = np.unique(ordered[levels.round().astype(int)])
    if len(edges) == 1:
        return np.full(bins + 1, edges[0])
    mass = np.histogram(ordered, edges)[0].astype(float)
    kept = _merged(edges, mass, bins)
    return np.append(kept, np.full(bins + 1 - len(kept), kept[-1]))


def _merged(edges: np.ndarray, mass: np.ndarray, bins: int) -> np.ndarray:
    """Merge neighbouring bins until `bins` are left, and return their edges."""
    count = len(mass)
    left, right = edges[:-1].tolist(), edges[1:].tolist()
    weight = mass.tolist()
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    version = [0] * count

    def loss(i: int, j: int) -> float:
        both = weight[i] + weight[j]
        return (
            _log_likelihood(weight[i], right[i] - left[i])
            + _log_likelihood(weight[j], right[j] - left[j])
            - _log_likelihood(both, right[j] - left[i])
        )

    heap = [(loss(i, i + 1), i, i + 1, 0, 0) for i in range(count - 1)]
    heapq.heapify(heap)
    alive = count
    while alive > bins and heap:
        _, i, j, of_i, of_j = heapq.heappop(heap)
        if version[i] != of_i or version[j] != of_j:
            continue  # one of the two has been merged with another bin
        weight[i] += weight[j]
        right[i] = right[j]
        after[i] = after[j]
        if after[i] < count:
            before[after[i]] = i
        version[i] += 1
        version[j] = -1
        alive -= 1
        for first, second in ((before[i], i), (i, after[i])):
            if first >= 0 and second < count:
                entry = (loss(first, second), first, second, version[first], version[second])
                heapq.heappush(heap, entry)
    kept, place = [left[0]], 0
    while place < count:
        kept.append(right[place])
        place = after[place]
    return np.array(kept)


def _log_likelihood(mass: float, width: float) -> float:
    return mass * math.log(mass / width) if mass > 0 else 0.0


def _of_histogram(values: np.ndarray, edges: np.ndarray) -> float:
    """Return the log likelihood of the histogram of the values with these edges."""
    edges = np.unique(edges)
    if len(edges) == 1:
        return 0.0
    pairs = zip(np.histogram(values, edges)[0], np.diff(edges), strict=True)
    return float(sum(_log_likelihood(float(each), width) for each, width in pairs))
