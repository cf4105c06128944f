"""Small fits whose density is known."""

import numpy as np
import pytest

from roundtrip import MLP, Likelihood, Residual, Roundtrip


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
def test_dequantised_density_gives_a_value_its_probability(rng):
    """Over a rounding step the density is nearly even and integrates to the share of the value."""
    X = rng.choice([0.0, 1.0, 2.0], p=[0.5, 0.2, 0.3], size=(4000, 1))
    settings = {"network": Residual(16, 1), "objective": Likelihood(batch_size=128)}
    est = Roundtrip(1, **settings, max_epochs=5, random_state=0).fit(X)
    assert est.resolution_ == [1.0]
    axis = np.linspace(-0.5, 2.5, 151)
    density = np.exp(est.score_samples((axis[:-1] + 0.01)[:, None]))
    shares = density.reshape(3, 50).mean(axis=1)
    np.testing.assert_allclose(shares, [0.5, 0.2, 0.3], atol=0.05)
    inside = density.reshape(3, 50)[:, 5:-5] / shares[:, None]  # spread evenly, not in peaks
    assert inside.min() > 0.6
    assert inside.max() < 1.5
    spread = est.sample(1000, random_state=0, rounded=False)
    assert (np.abs(spread) < 4).all()
    assert len(np.unique(spread)) > 900
    samples = est.sample(1000, random_state=0)
    kept = (spread > -0.5) & (spread < 2.5)  # rows outside are drawn again
    assert kept.mean() > 0.95
    np.testing.assert_array_equal(samples[kept], np.rint(spread[kept]))


def test_boxes_start_on_the_data_with_every_network(rng):
    """Not only with residual networks, which start as principal components."""
    X = rng.normal(size=(400, 2))
    objective = Likelihood(min_steps_per_epoch=1)
    est = Roundtrip(2, network=MLP((8,), (8,)), objective=objective, max_epochs=1).fit(X)
    assert (est.model_.noise.centres.std(dim=1) > 0.5).all()


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-170, 1e170, 1e300])
def test_tables_in_any_unit_have_finite_weights(unit, rng):
    X = unit * rng.normal(size=(60, 2))
    settings = {"network": Residual(8, 1), "objective": Likelihood(min_steps_per_epoch=5)}
    est = Roundtrip(2, **settings, max_epochs=1, tol=0.5, random_state=0).fit(X)
    assert all(part.isfinite().all() for part in est.model_.state_dict().values())
    assert np.isfinite(est.score_samples(X[:3])).all()
    assert np.isfinite(est.sample(3)).all()
    with pytest.raises(ValueError, match=r"too (narrow|wide) for float32"):
        Roundtrip(2, **settings, scale=None, max_epochs=1).fit(X)


def test_a_start_that_is_not_finite_is_refused(rng, monkeypatch):
    monkeypatch.setattr("roundtrip.training.data.NARROWEST", 0.0)
    with pytest.raises(ValueError, match="training can't start"):
        Roundtrip(2, scale=None, max_epochs=1).fit(1e-170 * rng.normal(size=(60, 2)))
