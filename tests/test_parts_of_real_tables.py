"""Parts of rows of CASP and Adult: the chain rule, integrals and draws, after short fits."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest

from roundtrip import Roundtrip

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from parts_data import TABLES, rows_of
from parts_of_rows import by_the_chain, half_observed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("ROUNDTRIP_DATA"), reason="ROUNDTRIP_DATA names no folder of data sets"
    ),
    pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning"),
]
TRAINING, ROWS = 4_000, 40


@pytest.fixture(scope="module", params=["CASP", "Adult"])
def fitted(request):
    table = rows_of(request.param, 0, None)
    est = Roundtrip(max_epochs=8, random_state=0).fit(table[:TRAINING])
    rows = table[TRAINING : TRAINING + ROWS].reset_index(drop=True)
    return est, rows, TABLES[request.param].target


def test_the_density_of_a_row_is_that_of_a_part_times_that_of_the_rest_given_it(fitted):
    est, rows, _ = fitted
    parts = half_observed(rows, 0)
    whole, part = est.density(rows), est.density(parts)
    given, error, converged = by_the_chain(est, rows, parts)
    converged &= whole.converged & part.converged
    gap = whole.log_density - part.log_density - given
    z = gap / np.sqrt(whole.std_error**2 + part.std_error**2 + error**2)
    assert converged.mean() > 0.9
    assert (np.abs(z[converged]) > 4).sum() <= 1
    assert 0.6 < z[converged].std() < 1.4
    assert np.median(error) < 0.3


def test_given_columns_make_the_density_of_the_others(fitted):
    """The estimate of `given=` is that of `conditional`, whose draws are others."""
    est, rows, target = fitted
    others = [name for name in rows if name != target]
    found = est.density(rows, given=others)
    log_p, error = est.conditional(rows, target, draws=2048).log_prob(rows[target], with_error=True)
    z = (found.log_density - log_p.to_numpy()) / np.hypot(found.std_error, error.to_numpy())
    assert (np.abs(z[found.converged]) > 4).sum() <= 1


def test_conditional_distributions_integrate_to_one_and_draws_follow_their_cdf(fitted):
    est, rows, target = fitted
    p = est.conditional(half_observed(rows, 1)[:6], target)
    kind = est.columns_[target]
    if kind.kind == "category":
        np.testing.assert_allclose(p.probabilities().sum(axis=1), 1 - kind.reserved, atol=1e-6)
        return
    # By Gauss's rule of three points between quantiles.
    axis = p.quantile(np.linspace(0.001, 0.999, 999)).to_numpy()
    thirds = [axis[:, :-1] + share * np.diff(axis, axis=1) for share in (0.1127, 0.5, 0.8873)]
    density = [np.exp(p.log_prob(each).to_numpy()) for each in thirds]
    total = (np.diff(axis, axis=1) * (5 * density[0] + 8 * density[1] + 5 * density[2])).sum(1) / 18
    np.testing.assert_allclose(total, 0.998, atol=0.01)
    drawn = p.sample(800, random_state=0)
    for row in range(len(drawn)):
        each = p.taken(row)
        found = kstest(drawn.iloc[row], lambda x, each=each: each.cdf(x[None]).to_numpy()[0])
        assert found.pvalue > 0.001
