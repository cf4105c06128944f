"""A fit that starts from an earlier one."""

import pytest
from conftest import TINY

from roundtrip import Isotropic, Roundtrip


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
