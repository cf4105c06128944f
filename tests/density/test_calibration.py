"""The certificate on adversarially trained networks, whose posteriors have many modes: minutes."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from roundtrip import DensityWarning, Roundtrip
from roundtrip.datasets import make_independent_mixture, make_involute
from roundtrip.density import estimate


def casp() -> np.ndarray:
    folder = os.environ.get("ROUNDTRIP_DATA")
    if folder is None:
        pytest.skip("ROUNDTRIP_DATA does not name a folder with casp.npz")
    X = np.load(Path(folder) / "casp.npz")["X"]
    return np.random.default_rng(0).permutation(X)


DATA = {
    "CASP": (casp, 5),
    "mixture": (lambda: make_independent_mixture(sd=0.1, random_state=0).X, 2),
    "involute": (lambda: make_involute(random_state=0).X, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize(("make", "latent_dim"), DATA.values(), ids=DATA.keys())
def test_certificate_is_calibrated_on_adversarial_networks(make, latent_dim):
    X = make()
    est = Roundtrip(latent_dim, objective="adversarial", random_state=0).fit(X[:-300])
    x = est.schema_.scaling.apply(X[-300:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        result = estimate(est.model_, x)
        reference = estimate(
            est.model_, x, tol=1e-9, max_evaluations=100_000, random_state=12345
        ).log_density
    z = ((result.log_density - reference) / result.std_error)[result.converged]
    assert result.converged.mean() > 0.9
    assert 0.7 < z.std() < 1.5
    assert abs(z.mean()) < 0.75
    assert (np.abs(z) > 4).mean() <= 0.02
