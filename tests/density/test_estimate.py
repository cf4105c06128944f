import copy
import re
import warnings

import numpy as np
import pytest
import torch
from oracles import LinearModel
from torch import nn

from roundtrip import DensityWarning, RoundtripModel
from roundtrip.density import estimate
from roundtrip.density.blocks import EVALUATIONS_PER_CALL
from roundtrip.density.method import Method
from roundtrip.density.result import DensityEstimate
from roundtrip.density.unconverged import warn_of_failures
from roundtrip.model.networks import mlp


@pytest.fixture
def network():
    rng = torch.Generator().manual_seed(0)
    return RoundtripModel(mlp(3, 4, (64, 64), rng=rng), mlp(4, 3, (32,), rng=rng), 3, 0.2)


@pytest.mark.parametrize(
    ("method", "n_samples", "n_rows"),
    [
        ("adaptive", 1, 300),
        ("importance", 7, 300),
        ("importance", 100, 300),
        ("importance", 5000, 30),
        ("laplace", 1, 300),
    ],
)
@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")  # untrained networks
def test_rows_do_not_depend_on_each_other(network, method, n_samples, n_rows):
    x = np.random.default_rng(0).normal(size=(n_rows, 4))
    rows = [0, 1, n_rows // 2, n_rows - 1]
    settings = {"method": method, "n_samples": n_samples, "tol": 0.5}
    together = estimate(network, x, **settings).log_density[rows]
    reordered = estimate(network, x[::-1], **settings).log_density[::-1]
    alone = [estimate(network, x[[i]], **settings) for i in rows]
    np.testing.assert_allclose(reordered[rows], together, rtol=1e-9)
    np.testing.assert_allclose([r.log_density[0] for r in alone], together, rtol=1e-9)


def test_accepts_arrays_lists_and_tensors(network):
    x = [[0.0, 1.0, 2.0, 3.0]]
    as_list = estimate(network, x, method="importance", n_samples=50).log_density
    np.testing.assert_array_equal(
        as_list, estimate(network, np.array(x), method="importance", n_samples=50).log_density
    )
    tensor = torch.tensor(x, requires_grad=True)
    np.testing.assert_array_equal(
        as_list, estimate(network, tensor, method="importance", n_samples=50).log_density
    )
    assert as_list.dtype == np.float64


def test_leaves_the_model_as_it_was(network):
    network.train()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    estimate(network, np.zeros((2, 4)), method="importance", n_samples=10)
    assert network.training
    assert all(p.grad is None for p in network.parameters())
    assert torch.equal(torch.get_rng_state(), before)  # the global stream is not touched


def test_far_away_rows_have_finite_densities(network):
    x = np.array([[0.0] * 4, [1e4] * 4, [1e30] * 4, [1e45] * 4])
    for method in ("adaptive", "importance", "laplace"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensityWarning)  # 1e45 is rather far
            density = estimate(network, x, method=method, n_samples=100).log_density
        assert np.isfinite(density).all()
        assert (np.diff(density) < 0).all()


def test_user_networks_without_parameters():
    class Double(nn.Module):
        def forward(self, z):
            return 2 * z

    class Half(nn.Module):
        def forward(self, x):
            return x / 2

    model = RoundtripModel(Double(), Half(), 1, sigma=1.0)
    expected = -0.5 * np.log(2 * np.pi * 5) - 0.5 * 9 / 5  # x ~ N(0, 4 + 1)
    assert estimate(model, [[3.0]], method="laplace").log_density[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"n_samples": 0}, "n_samples"),
        ({"scale": 0.0}, "scale"),
        ({"df": -1.0}, "df"),
        ({"sigma": float("nan")}, "sigma"),
        ({"sigma": 1e-200}, "sigma"),
        ({"df": 1e15}, "df"),
        ({"tol": 0.0}, "tol"),
        ({"max_evaluations": 0}, "max_evaluations"),
        ({"random_state": -1}, "random_state"),
        ({"x": [["a", "b"]]}, "numbers"),
        ({"x": [[0.0, 0.0, 0.0]]}, "3 features"),
        ({"x": [1.0, 2.0]}, "shape"),
        ({"x": np.empty((0, 2))}, "shape"),
        ({"x": [[np.nan, 1.0]]}, "NaN"),
        ({"x": [[np.inf, 1.0]]}, "NaN or infinite"),
    ],
)
def test_bad_input(arguments, message):
    arguments = {"x": [[0.0, 0.0]]} | arguments
    with pytest.raises(ValueError, match=message):
        estimate(LinearModel(1, 2).model, **arguments)


def test_networks_that_do_not_fit_the_data(fitted):
    with pytest.raises(TypeError, match="generator must be a torch"):
        RoundtripModel(lambda z: z, nn.Identity(), 1, 0.1)
    with pytest.raises(TypeError, match="density"):
        estimate(fitted, np.zeros((1, 2)))
    with pytest.raises(ValueError, match="generator makes rows of shape"):
        estimate(RoundtripModel(nn.Linear(2, 3), nn.Linear(4, 2), 2, 0.1), np.zeros((1, 4)))
    with pytest.raises(ValueError, match="encoder makes codes of shape"):
        estimate(RoundtripModel(nn.Linear(2, 4), nn.Linear(4, 3), 2, 0.1), np.zeros((1, 4)))


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan")])
def test_bad_sigma_of_a_model(sigma):
    with pytest.raises(ValueError, match="sigma"):
        RoundtripModel(nn.Linear(1, 1), nn.Linear(1, 1), 1, sigma)


def test_memory_is_bounded_by_the_block(network):
    """No tensor that G sees grows with the number of rows or of draws."""
    largest = []
    network.generator.register_forward_hook(lambda _, z, x: largest.append(len(x)))
    estimate(network, np.zeros((500, 4)), method="importance", n_samples=64)
    estimate(network, np.zeros((2, 4)), method="importance", n_samples=50_000)
    assert set(largest) == {1, EVALUATIONS_PER_CALL}  # the one row checks the shapes


@pytest.mark.parametrize("call", ["score_samples", "density"])
def test_warnings_point_at_the_users_call(fitted, mixture, call):
    fitted = copy.copy(fitted).set_params(tol=1e-6)
    with pytest.warns(DensityWarning, match="did not converge") as caught:
        getattr(fitted, call)(mixture.X[:3])
    assert [each.filename for each in caught] == [__file__]


def test_the_warning_of_a_mean_points_at_the_users_call(fitted, mixture):
    with pytest.warns(
        DensityWarning, match="standard error of the mean is .*, above 1e-07"
    ) as all_:
        result = fitted.density_mean(mixture.X[:3], tol=1e-7)
    assert [each.filename for each in all_] == [__file__]
    assert not result.converged
    assert "not converged" in repr(result)


def test_the_warning_counts_every_row_that_did_not_converge():
    """Also rows whose second estimate disagreed, which look precise and reliable."""
    n = 40
    columns = {
        "log_density": np.array([0.0] * 39 + [1e13]),
        "std_error": np.array([0.2] * 5 + [np.nan] * 2 + [0.01] * 33),
        "ess": np.array([100.0] * 15 + [2.0] * 4 + [100.0] * 21),
        "n_evaluations": np.full(n, 10_000),
        "pareto_k": np.array([0.1] * 7 + [0.9] * 8 + [0.1] * 25),
        "converged": np.array([False] * 25 + [True] * 14 + [False]),
    }
    result = DensityEstimate(**columns, method="adaptive")
    with pytest.warns(DensityWarning, match="26 of 40 rows did not converge") as caught:
        warn_of_failures(result, Method())
    message = str(caught[0].message)
    counts = [int(each) for each in re.findall(r"(\d+) (?:have|are)", message)]
    assert counts == [7, 12, 1, 6]
    assert "a second estimate disagreed" in message
