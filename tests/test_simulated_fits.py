"""Fits of the default preset, two minutes each."""

import numpy as np
import pytest

from roundtrip import Roundtrip
from roundtrip.datasets import make_independent_mixture, make_involute, make_octagon_mixture

BARS = {
    "mixture sd 0.1": (lambda seed: make_independent_mixture(sd=0.1, random_state=seed), 0.03),
    "octagon": (lambda seed: make_octagon_mixture(random_state=seed), 0.05),
    "involute": (lambda seed: make_involute(random_state=seed), 0.05),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "bar"), BARS.values(), ids=BARS.keys())
def test_two_minutes_of_the_default_come_close_to_the_truth(make, bar):
    data, test = make(0), make(1)
    est = Roundtrip(random_state=0).fit(data.X, max_time=120)
    gap = est.score_samples(test.X[:2000]) - test.log_density(test.X[:2000])
    assert gap.mean() > -bar
    assert gap.mean() <= 3 * gap.std() / np.sqrt(len(gap))
