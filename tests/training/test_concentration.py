import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TINY

from roundtrip import Roundtrip

LOG_COUNTS = np.log1p(np.arange(150, 250))
"""Repeated values without a common step, each too rare to be taken for a level."""


@pytest.fixture
def frame(rng):
    return pd.DataFrame(
        {
            "logs": rng.choice(LOG_COUNTS, size=300),
            "exact": rng.normal(size=300),
            "counts": rng.poisson(20, size=300),
        }
    )


def bound_of(log_density):
    """Stand in for the bound of a model with this log density of the first column."""
    return lambda model, rows, **settings: log_density(rows.x[:, 0].double())


def comb(frame, height=3.0, every=1):
    """Log density that is high at every n-th of the values of the column only."""
    scaled = (LOG_COUNTS[::every] - frame["logs"].mean()) / frame["logs"].std(ddof=0)
    values = torch.from_numpy(scaled)
    return lambda x: height * ((x[:, None] - values).abs().min(dim=1).values < 1e-3).double()


def smooth(frame):
    return lambda x: -0.5 * x.square()


BOUND = "roundtrip.training.concentration.importance_weighted_bound"


def test_a_density_on_single_values_is_reported_with_its_column(frame, monkeypatch):
    monkeypatch.setattr(BOUND, bound_of(comb(frame)))
    with pytest.warns(UserWarning, match=r"concentrates on single values.*: logs \(3") as caught:
        Roundtrip(**TINY).fit(frame)
    assert [each.filename for each in caught] == [__file__]


def test_a_comb_of_some_of_the_values_is_reported(frame, monkeypatch):
    monkeypatch.setattr(BOUND, bound_of(comb(frame, height=9.0, every=3)))
    with pytest.warns(UserWarning, match="concentrates on single values"):
        Roundtrip(**TINY).fit(frame)


def test_smooth_densities_are_not_reported(frame, monkeypatch):
    monkeypatch.setattr(BOUND, bound_of(smooth(frame)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Roundtrip(**TINY).fit(frame)


def test_columns_that_are_rounded_or_exact_are_not_even_tested(frame, monkeypatch):
    def fail(*args, **settings):
        raise AssertionError

    monkeypatch.setattr(BOUND, fail)
    Roundtrip(**TINY).fit(frame[["exact", "counts"]])
    Roundtrip(**TINY).fit(np.round(frame[["exact"]], 1))


def test_images_are_not_tested(rng):
    Roundtrip(**TINY).fit(rng.integers(0, 256, size=(40, 4, 4, 1)).astype(np.uint8))


def test_a_few_distant_values_are_no_comb(monkeypatch, rng):
    """Halfway between them a wide density is lower, too."""
    column = rng.permutation(np.repeat([0.0, 1.0, np.e, np.pi**2], 2))
    values = torch.from_numpy((column - column.mean()) / column.std())
    wide = bound_of(lambda x: -8 * (x[:, None] - values).abs().min(dim=1).values)
    monkeypatch.setattr(BOUND, wide)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Roundtrip(**TINY).fit(column[:, None])
