"""Marginals and conditionals of all subsets of columns, against closed forms and quadrature."""

from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from fitted_oracles import BentTable, GaussianTable
from scipy.stats import kstest

pytestmark = pytest.mark.slow

COLUMNS = 6
ORACLES = {
    "linear, m = 2": partial(GaussianTable, 2, COLUMNS),
    "linear, m = 6": partial(GaussianTable, 6, COLUMNS),
    "linear, m = 20": partial(GaussianTable, 20, COLUMNS),
    "linear, m = 4, little noise": partial(GaussianTable, 4, COLUMNS, sigma=0.1),
    "groups, m = 3": partial(GaussianTable, 3, COLUMNS, groups=True),
    "bent, m = 1": partial(BentTable, 1, COLUMNS),
    "bent, m = 2": partial(BentTable, 2, COLUMNS),
}
ROWS = 5
"""Of each subset."""


@pytest.fixture(scope="module", params=ORACLES.values(), ids=ORACLES.keys())
def oracle(request):
    return request.param()


def subsets(names):
    return [list(each) for size in range(1, len(names)) for each in combinations(names, size)]


def check_certificates(value, error, converged, truth):
    """Certificates are as good as those of full rows."""
    z = ((value - truth) / error)[converged]
    assert converged.mean() >= 0.98
    far = np.abs(z) > 4
    assert far.mean() <= 0.01
    # A mode that was missed is many standard errors off, and would be all of the spread.
    assert 0.8 < z[~far].std() < 1.25
    assert abs(z[~far].mean()) < 5 / np.sqrt(len(z))


def test_marginals_of_all_subsets(oracle):
    parts = []
    for number, subset in enumerate(subsets(oracle.names)):
        table = oracle.table(ROWS, seed=number)
        parts.append(table[subset].reindex(columns=oracle.names))
    table = pd.concat(parts, ignore_index=True)
    found = oracle.est.density(table)
    truth = oracle.log_density(table.to_numpy())
    check_certificates(found.log_density, found.std_error, found.converged, truth)


def test_conditionals_of_all_subsets(oracle):
    values, errors, converged, truths = [], [], [], []
    for number, known in enumerate(subsets(oracle.names)):
        table = oracle.table(ROWS, seed=100 + number)
        found = oracle.est.density(table, given=known)
        values.append(found.log_density)
        errors.append(found.std_error)
        converged.append(found.converged)
        part = table[known].reindex(columns=oracle.names)
        truth = oracle.log_density(table.to_numpy()) - oracle.log_density(part.to_numpy())
        truths.append(truth)
    check_certificates(*(np.concatenate(each) for each in (values, errors, converged, truths)))


def test_distributions_of_a_column_integrate_to_one_and_are_those_of_the_oracle(oracle):
    table = oracle.table(6, seed=7)
    known = ["a", "c", "d"]
    p = oracle.est.conditional(table[known], "b", draws=2048)
    assert p.converged.all()
    mean, std = p.mean().to_numpy(), p.std().to_numpy()
    axis = mean[:, None] + std[:, None] * np.linspace(-10, 10, 2001)
    density = np.exp(p.log_prob(axis).to_numpy())
    np.testing.assert_allclose(np.trapezoid(density, axis, axis=1), 1, atol=0.01)
    cdf, error = p.cdf(table["b"], with_error=True)
    drawn = p.sample(1_000, random_state=0)
    for row in range(len(table)):
        law = oracle.given("b", table[known].iloc[row].to_dict())
        assert abs(cdf[row] - law.cdf(table["b"][row])) < 4.5 * error[row]
        each = p.taken(row)
        own = kstest(drawn.iloc[row], lambda x, each=each: each.cdf(x[None]).to_numpy()[0])
        assert own.pvalue > 0.001


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
def test_rows_drawn_given_a_part_follow_conditional_cdfs(oracle):
    table = oracle.table(4, seed=8)
    known = ["b", "e"]
    drawn = oracle.est.sample(800, 0, given=table[known])
    for row in range(len(table)):
        part = drawn.loc[[row]]
        assert (part[known] == table.loc[row, known]).all(axis=None)
        values = table.loc[row, known].to_dict()
        for name in ("a", "c"):
            law = oracle.given(name, values)
            assert kstest(part[name], law.cdf).pvalue > 0.001


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
def test_draws_keep_correlations_and_spread_and_means_do_not(oracle):
    complete = oracle.table(500, seed=11)
    rng = np.random.default_rng(0)
    mask = rng.random(complete.shape) < 0.5
    mask[np.arange(len(mask)), rng.integers(COLUMNS, size=len(mask))] = False
    incomplete = complete.mask(mask)
    filled = oracle.est.impute(incomplete)
    drawn = oracle.est.impute(incomplete, draws=2, random_state=0)

    def gap(table):
        return np.abs(table.corr().to_numpy() - complete.corr().to_numpy()).max()

    def spread(table):
        return float((table.var() / complete.var()).mean())

    for table in drawn:
        assert gap(table) < 0.15
        assert spread(table) == pytest.approx(1, abs=0.08)
    assert spread(filled) < min(spread(table) for table in drawn) - 0.03
