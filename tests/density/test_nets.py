import numpy as np
import torch
from scipy.stats import kstest

from roundtrip.density.nets import MOST_POINTS, shifted_nets

CPU = torch.device("cpu")
KEYS = np.random.default_rng(0).integers(0, 2**63, size=2000).astype(np.uint64)


def test_points_are_uniform():
    points = shifted_nets(KEYS, 0, 64, 3, CPU)[:, 5].numpy()
    assert ((points > 0) & (points < 1)).all()
    for coordinate in points.T:
        assert kstest(coordinate, "uniform").pvalue > 1e-4
    assert np.abs(np.corrcoef(points.T) - np.eye(3)).max() < 0.1


def test_nets_of_other_keys_are_independent():
    points = shifted_nets(KEYS, 0, 1, 2, CPU)[:, 0]
    neighbours = np.corrcoef(points[:-1, 0], points[1:, 0])[0, 1]
    assert abs(neighbours) < 0.1


def test_a_net_grows_by_the_points_that_follow():
    whole = shifted_nets(KEYS[:3], 0, MOST_POINTS, 5, CPU)
    parts = [
        shifted_nets(KEYS[:3], *ends, 5, CPU) for ends in ((0, 64), (64, 96), (96, MOST_POINTS))
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0, atol=0)


def test_mean_of_a_net_is_unbiased_and_more_precise_than_that_of_random_points():
    points = shifted_nets(KEYS, 0, 64, 4, CPU)
    values = torch.exp(torch.special.ndtri(points).sum(-1) / 4).mean(dim=1)
    exact = np.exp(0.5 * 4 / 16)
    error = values.std() / np.sqrt(len(KEYS))
    assert abs(values.mean() - exact) < 4 * error
    random_sd = exact * np.sqrt(np.expm1(4 / 16)) / np.sqrt(64)
    assert values.std() < 0.3 * random_sd
