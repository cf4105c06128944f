"""A fit that needs more memory than there is, is refused before it starts."""

import numpy as np
import pytest

from roundtrip import Likelihood, Residual, Roundtrip
from roundtrip.io import memory


def test_a_fit_that_needs_more_memory_than_is_free_is_refused(monkeypatch):
    X = np.random.default_rng(0).normal(size=(20, 1000))
    monkeypatch.setattr(memory, "free_memory", lambda: 1e8)
    with pytest.raises(MemoryError, match=r"fit of 1,000 columns .* needs about 0\.\d+ GB of"):
        Roundtrip(latent_dim=2).fit(X)


@pytest.mark.filterwarnings("ignore:the table has more columns")
def test_a_narrower_one_is_fitted(monkeypatch):
    X = np.random.default_rng(0).normal(size=(20, 300))
    monkeypatch.setattr(memory, "free_memory", lambda: 1e9)
    settings = {"network": Residual(8, 1), "objective": Likelihood(min_steps_per_epoch=1)}
    Roundtrip(2, **settings, noise="diagonal", max_epochs=1, random_state=0).fit(X)


def test_free_memory_is_known_or_unlimited(monkeypatch, tmp_path):
    assert 1e6 < memory.free_memory() < 1e15
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "absent")
    assert memory.free_memory() > 1e6
