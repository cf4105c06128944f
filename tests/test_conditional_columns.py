"""The distribution of one column given the rest of each row."""

import copy
from functools import partial

import numpy as np
import pandas as pd
import pytest
from fitted_oracles import GaussianTable, MixedTable
from scipy.stats import kstest

from roundtrip.density import prepared
from roundtrip.density.part_encoder import fit_part_encoder


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    """Answers are right however well the encoder of parts of rows is trained."""
    monkeypatch.setattr(prepared, "fit_part_encoder", partial(fit_part_encoder, steps=60))


@pytest.fixture(scope="module", params=[False, True], ids=["gaussian", "groups"])
def numbers(request):
    return GaussianTable(2, 4, groups=request.param)


@pytest.fixture(scope="module")
def mixed():
    return MixedTable()


@pytest.fixture
def rows(numbers):
    return numbers.table(30, seed=3)


@pytest.fixture
def p(numbers, rows):
    return numbers.est.conditional(rows, "b", draws=1024)


@pytest.fixture
def laws(numbers, rows):
    return [numbers.given("b", row.drop("b").to_dict()) for _, row in rows.iterrows()]


def check(found, truth, precision=0.0):
    """Compare answers with the truth in units of their standard errors, and its own precision."""
    value, error = (np.asarray(each, dtype=float) for each in found)
    z = (value - np.asarray(truth)) / np.hypot(error, precision)
    assert (np.abs(z) < 4.5).all()
    assert (
        z.size < 20 or z.std() < 1.5
    )  # draws of a proposal in proportion are better than random ones


def test_answers_agree_with_closed_forms_within_their_standard_errors(p, laws, rows):
    assert p.converged.all()
    check(p.mean(with_error=True), [law.mean for law in laws])
    check(p.std(with_error=True), [law.std for law in laws])
    check(
        p.cdf(rows["b"], with_error=True),
        [law.cdf(x) for law, x in zip(laws, rows["b"], strict=True)],
    )
    truth = [np.log(law.pdf(x)) for law, x in zip(laws, rows["b"], strict=True)]
    check(p.log_prob(rows["b"], with_error=True), truth)
    quantiles, errors = p.quantile([0.05, 0.5, 0.95], with_error=True)
    for q in (0.05, 0.5, 0.95):
        found = np.array([law.cdf(x) for law, x in zip(laws, quantiles[q], strict=True)])
        slope = [law.pdf(x) for law, x in zip(laws, quantiles[q], strict=True)]
        check((found, errors[q] * slope), q)


def test_densities_integrate_to_one_and_agree_with_the_cdf(p):
    mean, std = p.mean().to_numpy(), p.std().to_numpy()
    axis = mean[:, None] + std[:, None] * np.linspace(-9, 9, 1201)
    density = np.exp(p.log_prob(axis).to_numpy())
    total = np.trapezoid(density, axis, axis=1)
    np.testing.assert_allclose(total, 1, atol=0.001)
    half = np.trapezoid(density[:, :601], axis[:, :601], axis=1)
    np.testing.assert_allclose(half, p.cdf(mean), atol=1e-3)


def test_quantiles_invert_the_cdf(p):
    q = [0.001, 0.2, 0.9]
    values = p.quantile(q)
    np.testing.assert_allclose(p.cdf(values.to_numpy()), np.tile(q, (len(p), 1)), atol=1e-8)
    inner = p.interval(0.8)
    np.testing.assert_array_equal(inner, p.quantile([0.1, 0.9]))
    assert list(inner) == ["lower", "upper"]
    np.testing.assert_allclose(p.quantile(0.2), values[0.2], rtol=1e-8)


def test_draws_follow_the_cdf(p, laws):
    drawn = p.sample(2_000, random_state=0)
    for row in range(3):
        each = p.taken(row)
        found = kstest(drawn.iloc[row], lambda x, each=each: each.cdf(x[None]).to_numpy()[0])
        assert found.pvalue > 0.001
    pd.testing.assert_frame_equal(drawn, p.sample(2_000, random_state=0))


def test_the_mode_is_a_likely_value(p, laws):
    for law, mode in zip(laws, p.mode(), strict=True):
        axis = np.linspace(law.mean - 5, law.mean + 5, 2001)
        assert law.pdf(mode) > 0.97 * law.pdf(axis).max()


def test_the_cell_itself_is_ignored(numbers, rows):
    expected = numbers.est.conditional(rows, "b").mean()
    for other in (rows.assign(b=7.0), rows.assign(b=np.nan), rows.drop(columns="b")):
        pd.testing.assert_series_equal(numbers.est.conditional(other, "b").mean(), expected)


def test_a_column_given_nothing_else_has_its_marginal_distribution(numbers, rows):
    p = numbers.est.conditional(rows[["b"]].iloc[:2], "b", draws=2048)
    law = numbers.given("b", {})
    check(p.mean(with_error=True), law.mean)
    check(p.cdf(0.3, with_error=True), law.cdf(0.3))


def test_rows_do_not_depend_on_each_other(numbers, rows):
    rows.index = [f"r{number}" for number in range(len(rows))]
    together = numbers.est.conditional(rows, "b")
    alone = numbers.est.conditional(rows.iloc[[7]], "b")
    assert together.mean().iloc[7] == alone.mean().iloc[0]
    assert alone.mean().index.tolist() == ["r7"]
    taken = together.taken([7, 3])
    np.testing.assert_allclose(taken.quantile(0.3), together.quantile(0.3).iloc[[7, 3]], rtol=1e-12)
    assert "given the rest of 2 rows" in repr(taken)


def test_few_kept_outputs_give_the_same_answers(numbers, rows, monkeypatch):
    p = numbers.est.conditional(rows, "b")
    kept = [p.mean(), p.cdf(0.1)]
    monkeypatch.setattr("roundtrip.density.column_law.MOST_OUTPUTS", 0)
    monkeypatch.setattr("roundtrip.density.column_law.NUMBERS_AT_ONCE", 600)
    again = numbers.est.conditional(rows, "b")
    for one, other in zip(kept, (again.mean(), again.cdf(0.1)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def masks(row, without):
    """Conditions for quadrature that say that each cell is what it is in a row."""
    return {
        name: lambda x, value=value: x == value for name, value in row.items() if name != without
    }


def test_counts_levels_and_dates_agree_with_quadrature(mixed):
    row = mixed.learned[["visits", "colour", "size", "day"]].iloc[[5]]
    cells = row.iloc[0].to_dict()
    cells["day"] = (cells["day"] - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
    conditional = partial(mixed.est.conditional, row, draws=4096)

    values, truth = mixed.law("visits", **masks(cells, "visits"))
    p = conditional("visits")
    found, error = p.cdf(values[None, 20:45], with_error=True)
    inside = found - p.cdf(values[19]).to_numpy()[:, None]  # the grid leaves out the tails
    check((inside, error), truth[20:45].cumsum()[None], precision=5e-4)
    assert p.mean()[5] == pytest.approx(truth @ values, abs=5 * p.mean(with_error=True)[1][5])
    median = values[np.searchsorted(truth.cumsum(), 0.5)]
    assert abs(int(p.quantile(0.5)[5]) - median) <= 1
    assert p.quantile(0.5).dtype == mixed.learned["visits"].dtype
    assert abs(truth[values == p.mode()[5]][0] - truth[values >= 0].max()) < 0.03

    for name in ("colour", "size"):
        values, truth = mixed.law(name, **masks(cells, name))
        found, error = conditional(name).probabilities(with_error=True)
        assert list(found) == list(values)
        check((found, error), truth[None])
        column = mixed.est.columns_[name]
        assert found.sum(axis=1)[5] == pytest.approx(1 - column.reserved)
        log_p = conditional(name).log_prob(np.array([list(values)]))
        np.testing.assert_allclose(np.exp(log_p), found, rtol=1e-6)
        assert conditional(name).mode()[5] == values[np.argmax(truth)]
    levels = conditional("size")
    found = levels.cdf("M", with_error=True)
    check([each.to_numpy() for each in found], truth[:2].sum())
    assert levels.quantile(0.5).dtype == mixed.learned["size"].dtype

    values, truth = mixed.law("day", **masks(cells, "day"))
    p = conditional("day")
    mean, error = p.mean(with_error=True)
    gap = (mean - pd.Timestamp("1970-01-01"))[5] / pd.Timedelta("1D") - truth @ values / truth.sum()
    assert abs(gap) < 4 * (error[5] / pd.Timedelta("1D")) + 0.2
    assert isinstance(p.std()[5], pd.Timedelta)
    assert p.quantile(0.5)[5] == p.quantile(0.5)[5].normalize()
    inside = p.cdf(pd.Timestamp("2020-02-20"), with_error=True)
    check([each.to_numpy() for each in inside], truth[values <= 18312].sum())


def test_log_prob_is_the_conditional_density(mixed):
    rows = mixed.learned.iloc[:4]
    p = mixed.est.conditional(rows, "height", draws=4096)
    found, error = p.log_prob(rows["height"], with_error=True)
    others = [name for name in rows if name != "height"]
    density = mixed.est.density(rows, given=others, tol=0.02)
    gap = found.to_numpy() - density.log_density
    assert (np.abs(gap) < 4 * np.hypot(error, density.std_error)).all()


def test_bad_questions_are_refused(mixed):
    rows = mixed.learned.iloc[:3]
    with pytest.raises(ValueError, match=r"column must be one of \['height', .*, got 'price'"):
        mixed.est.conditional(rows, "price")
    with pytest.raises(ValueError, match="draws must be an integer of at least 64, got 3"):
        mixed.est.conditional(rows, "height", draws=3)
    with pytest.raises(ValueError, match="unseen columns: price"):
        mixed.est.conditional(rows[["size"]].assign(price=1.0), "height")
    colour = mixed.est.conditional(rows, "colour")
    for method in (colour.mean, colour.std, partial(colour.cdf, 1), partial(colour.quantile, 0.5)):
        with pytest.raises(ValueError, match=r"'colour' is a category of 3 levels: .* use prob"):
            method()
    height = mixed.est.conditional(rows, "height")
    with pytest.raises(ValueError, match="is for categories, but 'height' is a number"):
        height.probabilities()
    with pytest.raises(ValueError, match="q must be a number above 0 and below 1"):
        height.quantile(1.5)
    with pytest.raises(ValueError, match=r"one for each of 3 rows, .* got the shape \(2,\)"):
        height.cdf([1.0, 2.0])
    with pytest.raises(ValueError, match="fit had numbers, but row 0 has 'tall'"):
        height.cdf("tall")


def test_pickled_answers_are_the_same(p):
    again = copy.deepcopy(p)
    pd.testing.assert_series_equal(again.mean(), p.mean())
