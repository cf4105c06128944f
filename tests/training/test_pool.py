import numpy as np
import torch

from roundtrip.training.pool import FakePool


def test_pool_mixes_old_and_new():
    pool = FakePool(3, seed=0)
    seen = [pool.exchange(torch.full((1, 1), float(i))).item() for i in range(200)]
    ages = np.arange(200) - np.array(seen)
    assert (ages[:3] == 0).all()
    assert 0.4 < (ages[3:] == 0).mean() < 0.6
    assert (ages >= 0).all()
    assert ages[20:].max() < 50  # what was handed out is gone from the pool
    assert len(pool.batches) == 3
    assert FakePool(0, seed=0).exchange(torch.ones(1)) == 1
