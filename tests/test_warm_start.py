"""A fit that starts from an earlier one."""

import numpy as np
import pandas as pd
import pytest
from conftest import TINY

from roundtrip import Isotropic, Roundtrip, load


def test_a_sigma_that_is_asked_for_holds_after_a_fit_that_learnt_it(mixture):
    est = Roundtrip(latent_dim=2, noise=Isotropic(), warm_start=True, **TINY).fit(mixture.X)
    est.set_params(noise=Isotropic(sigma=0.123)).fit(mixture.X)
    assert est.sigma_ == pytest.approx(0.123)


def test_other_networks_are_refused_and_leave_the_fit_as_it_was(mixture):
    est = Roundtrip(latent_dim=2, warm_start=True, **TINY).fit(mixture.X)
    scores = est.score_samples(mixture.X[:3])
    with pytest.raises(ValueError, match="networks of another shape"):
        est.set_params(network__width=8).fit(mixture.X)
    assert (est.score_samples(mixture.X[:3]) == scores).all()


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"missing": "model"}, "missing="),
        ({"columns": {"x": "category"}}, "columns="),
        ({"columns": {"x": "category"}, "missing": "model"}, "columns= and missing="),
    ],
)
@pytest.mark.parametrize("saved", [False, True])
def test_tables_are_read_as_in_the_earlier_fit(setting, named, saved, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.integers(3, size=200), "y": rng.normal(size=200)})
    columns = {"x": [0, 1, 2]}
    est = Roundtrip(latent_dim=1, warm_start=True, columns=columns, **TINY).fit(table)
    columns["x"].append(3)  # which is no setting of the fit
    est.set_params(**({"columns": {"x": (0, 1, 2)}} | setting))
    if saved:
        est.save(tmp_path / "model.rt")
        est = load(tmp_path / "model.rt")
    with pytest.raises(ValueError, match=f"^{named} .*; set warm_start=False, or "):
        est.fit(table)
    est.set_params(columns={"x": np.arange(3)}, missing="ignore").fit(table)
    est.set_params(**setting, warm_start=False).fit(table)
    est.set_params(warm_start=True).fit(table)
