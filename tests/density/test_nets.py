import numpy as np
import torch
from scipy.stats import kstest

from roundtrip.density.nets import NET_SIZE, shifted_nets

CPU = torch.device("cpu")
KEYS = np.random.default_rng(0).integers(0, 2**63, size=2000).astype(np.uint64)


def test_points_are_uniform():
    points = shifted_nets(KEYS, 0, 3, CPU)[:, 5].numpy()
    assert ((points > 0) & (points < 1)).all()
    for coordinate in points.T:
        assert kstest(coordinate, "uniform").pvalue > 1e-4
    assert np.abs(np.corrcoef(points.T) - np.eye(3)).max() < 0.1


def test_nets_of_other_keys_and_numbers_are_independent():
    first, second = (shifted_nets(KEYS, number, 2, CPU)[:, 0] for number in (0, 1))
    together = torch.cat([first, second], dim=1).numpy()
    assert np.abs(np.corrcoef(together.T) - np.eye(4)).max() < 0.1
    neighbours = np.corrcoef(first[:-1, 0], first[1:, 0])[0, 1]
    assert abs(neighbours) < 0.1
    again = shifted_nets(KEYS[:3], 1, 2, CPU)
    torch.testing.assert_close(again[:, 0], second[:3], rtol=0, atol=0)


def test_mean_of_a_net_is_unbiased_and_more_precise_than_that_of_random_points():
    points = shifted_nets(KEYS, 0, 4, CPU)
    values = torch.exp(torch.special.ndtri(points).sum(-1) / 4).mean(dim=1)
    exact = np.exp(0.5 * 4 / 16)
    error = values.std() / np.sqrt(len(KEYS))
    assert abs(values.mean() - exact) < 4 * error
    random_sd = exact * np.sqrt(np.expm1(4 / 16)) / np.sqrt(NET_SIZE)
    assert values.std() < 0.3 * random_sd
