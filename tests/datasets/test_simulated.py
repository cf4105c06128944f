"""The samples follow the stated densities, and the densities are the paper's."""

import pickle

import numpy as np
import pytest
from scipy import integrate, special, stats

from roundtrip.datasets import make_independent_mixture, make_involute, make_octagon_mixture

# name: (constructor of n_samples, half width of a square that holds the mass, grid step)
PLANES = {
    "mixture": (make_independent_mixture, 5.0, 0.05),
    "mixture sd 0.1": (lambda n, **kw: make_independent_mixture(n, sd=0.1, **kw), 2.0, 0.0125),
    "octagon": (make_octagon_mixture, 9.0, 0.02),
    "involute": (make_involute, 9.0, 0.1),
    "involute sd 1": (lambda n, **kw: make_involute(n, sd=1.0, **kw), 12.0, 0.2),
}
MAKERS = {
    "mixture": make_independent_mixture,
    "octagon": make_octagon_mixture,
    "involute": make_involute,
}
every_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def grid_log_density(data, half_width, step):
    """Log densities at the middles of square cells; entry [i, j] is at (x_1, x_2) = (i, j)."""
    middles = np.arange(-half_width + step / 2, half_width, step)
    points = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    return data.log_density(points).reshape(len(middles), len(middles))


@pytest.mark.parametrize("plane", PLANES.values(), ids=PLANES)
def test_sample_and_density_agree(plane):
    make, half_width, step = plane
    data = make(10_000, random_state=3)
    log_p = grid_log_density(data, half_width, step)
    mass = np.exp(log_p) * step**2
    assert mass.sum() == pytest.approx(1, abs=1e-6)

    at_sample = data.log_density(data.X)
    standard_error = at_sample.std() / np.sqrt(len(at_sample))
    assert abs(at_sample.mean() - (mass * log_p).sum()) < 4 * standard_error

    bins = 20
    cells = len(mass) // bins
    expected = mass.reshape(bins, cells, bins, cells).sum(axis=(1, 3)) * len(data.X)
    edges = np.linspace(-half_width, half_width, bins + 1)
    observed = np.histogram2d(*data.X.T, bins=[edges, edges])[0]
    rare = expected < 5
    observed = np.append(observed[~rare], len(data.X) - observed[~rare].sum())
    expected = np.append(expected[~rare], len(data.X) - expected[~rare].sum())
    assert stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize("sd", [0.1, 0.5])
def test_mixture_marginals(sd):
    def cdf(x):
        return stats.norm.cdf(x[:, None], [-1, 0, 1], sd).mean(axis=1)

    X = make_independent_mixture(5_000, dim=4, sd=sd, random_state=0).X
    for column in X.T:
        assert stats.kstest(column, cdf).pvalue > 1e-3
    correlations = np.corrcoef(X, rowvar=False)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(len(X))


def test_mixture_log_density_is_a_sum_over_coordinates():
    data = make_independent_mixture(200, dim=10, sd=0.1, random_state=0)
    assert data.dim == 10
    one = np.log(stats.norm.pdf(data.X[:, :, None], [-1, 0, 1], 0.1).mean(axis=2))
    np.testing.assert_allclose(data.log_density(data.X), one.sum(axis=1), rtol=0, atol=1e-10)


def test_default_sd_is_the_papers():
    x = np.random.default_rng(0).normal(size=(5, 2))
    mixture = make_independent_mixture(1)
    np.testing.assert_array_equal(
        mixture.log_density(x), make_independent_mixture(1, sd=0.5).log_density(x)
    )
    np.testing.assert_array_equal(
        make_involute(1).log_density(x), make_involute(1, sd=0.4).log_density(x)
    )


def test_octagon_is_the_papers_mixture():
    data = make_octagon_mixture(300, random_state=0)
    x = np.concatenate([data.X, np.random.default_rng(1).uniform(-6, 6, size=(100, 2))])
    logs = []
    for i in range(1, 9):
        c, s = np.cos(np.pi * i / 4), np.sin(np.pi * i / 4)
        off = (1 - 0.16**2) * s * c
        cov = [[c**2 + 0.16**2 * s**2, off], [off, s**2 + 0.16**2 * c**2]]
        logs.append(stats.multivariate_normal([3 * c, 3 * s], cov).logpdf(x))
    expected = special.logsumexp(logs, axis=0) - np.log(8)
    np.testing.assert_allclose(data.log_density(x), expected, rtol=0, atol=1e-9)


def involute_by_quad(x, sd):
    """Log density at one point; scipy's quad on the part of (0, 2π) that counts."""

    def exponent(r):
        squared = (x[0] - r * np.sin(2 * r)) ** 2 + (x[1] - r * np.cos(2 * r)) ** 2
        return -squared / (2 * sd**2)

    r = np.linspace(0, 2 * np.pi, 200_001)
    f = exponent(r)
    shift = f.max()
    # Runs of grid points within 50 nats of the top, each widened by a point at either end.
    near = np.flatnonzero(np.diff(f > shift - 50, prepend=False, append=False))
    total = 0.0
    for first, end in near.reshape(-1, 2):
        low, high = max(first - 1, 0), min(end, len(r) - 1)
        top = r[low + np.argmax(f[low : high + 1])]
        for a, b in [(r[low], top), (top, r[high])]:
            if a < b:
                total += integrate.quad(
                    lambda r: np.exp(exponent(r) - shift), a, b, epsabs=0, epsrel=1e-9, limit=500
                )[0]
    return shift + np.log(total) - np.log(2 * np.pi) - np.log(2 * np.pi * sd**2)


@pytest.mark.parametrize("sd", [0.02, 0.1, 0.4, 3.0])
def test_involute_against_quad(sd):
    rng = np.random.default_rng(5)
    r = np.append(rng.uniform(0, 2 * np.pi, size=8), [0, 2 * np.pi])
    on_curve = np.column_stack([r * np.sin(2 * r), r * np.cos(2 * r)])
    anywhere = rng.uniform(-8, 8, size=(15, 2))
    far = [[50, -50], [-50, 50], [0, 60], [60, 0], [0, -60], [-60, 0], [300, 200]]
    x = np.concatenate([on_curve, anywhere, far])
    expected = [involute_by_quad(point, sd) for point in x]
    log_density = make_involute(1, sd=sd).log_density(x)
    # rtol counts only where the log density is below -1e6, so large that rounding shows.
    np.testing.assert_allclose(log_density, expected, rtol=1e-13, atol=1e-7)


@pytest.mark.parametrize("sd", [1e-6, 1e-3, 0.02, 0.4, 5.0, 1e3])
def test_involute_at_the_origin(sd):
    # There the exponent is -r²/(2 sd²), so the integral is an error function.
    integral = sd * np.sqrt(np.pi / 2) * special.erf(2 * np.pi / (np.sqrt(2) * sd))
    expected = np.log(integral) - 2 * np.log(2 * np.pi) - 2 * np.log(sd)
    log_density = make_involute(1, sd=sd).log_density([[0.0, 0.0]])
    np.testing.assert_allclose(log_density, [expected], rtol=0, atol=1e-9)


@pytest.mark.parametrize("distance", [1e3, 1e9, 1e15, 1e99])
@every_maker
def test_log_density_stays_finite_far_away(make, distance):
    data = make(1)
    angle = np.linspace(0, 2 * np.pi, 50)
    x = distance * np.column_stack([np.cos(angle), np.sin(angle)])
    assert np.isfinite(data.log_density(x)).all()


@every_maker
def test_log_density_of_a_row_ignores_the_other_rows(make):
    data = make(5_000, random_state=0)  # several chunks
    together = data.log_density(data.X)
    picked = [0, 1, 2047, 2048, 4999]
    alone = np.concatenate([data.log_density(data.X[[i]]) for i in picked])
    np.testing.assert_allclose(together[picked], alone, rtol=0, atol=1e-12)
    assert together.dtype == np.float64
    assert data.log_density(np.empty((0, 2))).shape == (0,)


@every_maker
def test_random_state(make):
    first = make(20, random_state=1).X
    assert first.shape == (20, 2)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, make(20, random_state=np.int64(1)).X)
    assert not np.array_equal(first, make(20, random_state=2).X)
    assert not np.array_equal(make(20).X, make(20).X)
    for kind in (np.random.default_rng, np.random.RandomState):
        state = kind(7)
        drawn, then = make(20, random_state=state).X, make(20, random_state=state).X
        assert not np.array_equal(drawn, then)
        np.testing.assert_array_equal(drawn, make(20, random_state=kind(7)).X)


@every_maker
def test_leaves_the_global_generator_alone(make):
    before = np.random.get_state()[1].copy()
    make(20)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


@every_maker
def test_data_is_frozen_and_picklable(make):
    data = make(20, random_state=0)
    with pytest.raises(AttributeError):
        data.X = np.zeros((1, 2))
    copy = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(copy.log_density(data.X), data.log_density(data.X))


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        *((make, {"n_samples": n}, "n_samples") for make in MAKERS.values() for n in (0, -1, 2.5)),
        *((make, {"random_state": -1}, "random_state") for make in MAKERS.values()),
        (make_octagon_mixture, {"random_state": "seed"}, "random_state"),
        *((make_independent_mixture, {"dim": dim}, "dim") for dim in (0, -2, 1.0)),
        *((make_independent_mixture, {"sd": sd}, "sd") for sd in (0, -0.1, np.nan, np.inf)),
        *((make_involute, {"sd": sd}, "sd") for sd in (0.0, -1, np.nan, "wide")),
    ],
)
def test_bad_parameters(make, arguments, message):
    (value,) = arguments.values()
    with pytest.raises(ValueError, match=f"^{message} must be .*, got {value!r}$"):
        make(**arguments)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0.0, 0.0], r"x must have shape \(rows, 2\), got \(2,\)"),
        ([[0.0, 0.0, 0.0]], r"x must have shape \(rows, 2\), got \(1, 3\)"),
        (np.zeros((1, 1, 2)), r"x must have shape \(rows, 2\), got \(1, 1, 2\)"),
        ([[0.0, np.nan]], "x must be finite"),
        ([[0.0, -np.inf]], "x must be finite"),
        ([[0.0, 1e200]], "x must be finite and within"),
    ],
)
@every_maker
def test_bad_points(make, x, message):
    with pytest.raises(ValueError, match=message):
        make(5).log_density(x)
