"""Small fits whose density is known."""

import numpy as np
import pytest

from roundtrip import Likelihood, Residual, Roundtrip


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
    assert (np.abs(est.sample(1000, random_state=0)) < 4).all()
