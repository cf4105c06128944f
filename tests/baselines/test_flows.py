import sys

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.base import clone

from roundtrip.baselines import MADE, MAF, NSF, RealNVP

SMALL = {"hidden": (32, 32), "learning_rate": 5e-3, "max_epochs": 10, "random_state": 0}
FLOWS = {
    "made": MADE(**SMALL),
    "realnvp": RealNVP(transforms=4, **SMALL),
    "maf": MAF(transforms=2, **SMALL),
    "nsf": NSF(transforms=1, **SMALL),
}


@pytest.mark.parametrize("name", FLOWS)
def test_learns_a_gaussian(rng, name):
    exact = stats.multivariate_normal(
        [5.0, -1.0, 0.0], [[4.0, 1.6, 0.0], [1.6, 1.0, 0.3], [0.0, 0.3, 1.0]]
    )
    X, x = exact.rvs(4000, random_state=0), exact.rvs(1000, random_state=1)
    est = clone(FLOWS[name]).fit(X)
    error = est.score_samples(x) - exact.logpdf(x)
    assert abs(error.mean()) < 0.05
    assert np.median(abs(error)) < 0.15


@pytest.mark.parametrize("name", FLOWS)
def test_draws_are_the_inverse_of_the_density(rng, name):
    """The Jacobian of the sampler, by autograd, gives the density that scoring reports."""
    est = clone(FLOWS[name]).set_params(max_epochs=2).fit(rng.normal(size=(300, 3)))
    transform = est.flow_().transform
    z = torch.from_numpy(rng.normal(size=(1, 3))).float()
    x = transform.inv(z).detach()
    torch.testing.assert_close(transform(x), z, atol=1e-3, rtol=1e-3)
    jacobian = torch.autograd.functional.jacobian(lambda row: transform(row[None])[0], x[0])
    expected = stats.norm.logpdf(z).sum() + torch.linalg.slogdet(jacobian)[1].item()
    rows = est.scaling_.undo(x.double().numpy())
    assert est.score_samples(rows)[0] == pytest.approx(expected + est.scaling_.log_det, abs=1e-3)


def test_every_column_moves_in_real_nvp(rng):
    for seed in range(5):
        est = RealNVP(transforms=2, hidden=(4,), max_epochs=1, random_state=seed)
        masks = torch.stack(
            [t.mask for t in est.fit(rng.normal(size=(20, 5))).flow_.transform.transforms]
        )
        assert torch.equal(masks[0], ~masks[1])


def test_affine_lets_splines_resolve_narrow_conditional_densities(rng):
    x = rng.normal(size=(2000, 1))
    X = np.hstack([x, x**2 + 0.02 * rng.normal(size=x.shape)])
    settings = {"transforms": 1, **SMALL}
    with_affine = NSF(**settings).fit(X[:1500]).score(X[1500:])
    assert with_affine > NSF(affine=False, **settings).fit(X[:1500]).score(X[1500:]) + 0.2


def test_too_wide_for_float32(rng):
    X = rng.normal(size=(100, 2))
    est = MADE(**SMALL).fit(X)
    with pytest.raises(ValueError, match="float32"):
        est.score_samples(X * 1e200)


def test_without_zuko(rng, monkeypatch):
    monkeypatch.setitem(sys.modules, "zuko", None)
    with pytest.raises(ImportError, match=r"pip install 'roundtrip\[baselines\]'"):
        MADE().fit(rng.normal(size=(20, 2)))


@pytest.mark.parametrize(
    ("est", "message"),
    [
        (MADE(hidden=()), "hidden must be a sequence of layer widths"),
        (MADE(learning_rate=0), "learning_rate must be a number above 0"),
        (MADE(batch_size=0), "batch_size must be an integer"),
        (MADE(max_epochs=0), "max_epochs must be an integer"),
        (MADE(patience=0), "patience must be an integer"),
        (MADE(averaging=1), "averaging must be a number above 0 and below 1"),
        (MADE(device="toaster"), "device 'toaster'"),
        (RealNVP(transforms=0), "transforms must be an integer"),
        (MAF(transforms=1.5), "transforms must be an integer"),
        (NSF(transforms=0), "transforms must be an integer"),
        (NSF(bins=1), "bins must be an integer of at least 2"),
        (NSF(affine="yes"), "affine must be one of"),
    ],
)
def test_bad_settings(rng, est, message):
    with pytest.raises(ValueError, match=message):
        est.fit(rng.normal(size=(20, 2)))
