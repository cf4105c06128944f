import torch

from roundtrip.data import Rows
from roundtrip.training.batches import Batches


def test_batches_with_replacement_and_shuffled():
    data = Rows.without_context(torch.arange(10.0)[:, None])
    shuffled = Batches(data, 5, sampling="shuffle", rng=torch.Generator().manual_seed(0))
    for _ in range(3):
        assert sorted(torch.cat([next(shuffled).x, next(shuffled).x]).flatten()) == list(range(10))
    drawn = Batches(data, 1000, sampling="replacement", rng=torch.Generator().manual_seed(0))
    counts = torch.bincount(next(drawn).x[:, 0].long())
    assert counts.min() > 50
    small = Batches(data[:3], 7, sampling="shuffle", rng=torch.Generator().manual_seed(0))
    assert next(small).x.shape == (7, 1)


def test_jitter_of_single_values_goes_with_their_rows():
    data = Rows.without_context(torch.arange(100.0)[:, None])
    jitter = torch.where(data.x % 2 == 0, 0.5, 0.0)
    stream = Batches(
        data, 50, sampling="shuffle", rng=torch.Generator().manual_seed(0), jitter=jitter
    )
    x = torch.cat([next(stream).x, next(stream).x])
    even = x.round() % 2 == 0
    assert (x[~even] == x[~even].round()).all()
    assert (x[even] != x[even].round()).all()
    assert (x - x.round()).abs().max() <= 0.25
