"""Starts of climbs towards maxima of p(x, z)."""

import math

import torch

from roundtrip.density.starts.climbing import LIKELY_CANDIDATES, _next_start


def test_the_next_start_is_the_farthest_of_the_likely_candidates():
    value = torch.arange(100.0)[None]
    distance = torch.ones(1, 100)
    distance[0, 7] = 5.0
    distance[0, LIKELY_CANDIDATES] = 9.0  # far, but not likely
    assert _next_start(value, distance).tolist() == [7]


def test_points_of_known_modes_are_no_starts_while_there_are_others():
    value = torch.full((1, 100), math.inf)
    distance = torch.full((1, 100), 3.0)
    value[0, [4, 9]] = torch.tensor([2.0, 1.0])
    distance[0, [4, 9]] = torch.tensor([1.0, 0.5])
    assert _next_start(value, distance).tolist() == [4]
